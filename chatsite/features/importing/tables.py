"""The tables of apps in export.json, as lists or as values of the conversation."""

from chatsite.plugins import AppData, app_data


def exported_lists() -> list[AppData]:
    """Return the lists in an order that does not depend on the order of the apps."""
    found = (data for data in app_data if data.row)
    return sorted(found, key=lambda data: data.name)


def exported_values() -> list[AppData]:
    return [data for data in app_data if data.form]
