"""The tables of apps that are in export.json, as its lists or as values of the
conversation.
"""

from chatsite.plugins import AppData, app_data


def exported_lists() -> list[AppData]:
    """In an order that does not depend on the one of the apps."""
    found = (data for data in app_data if data.row)
    return sorted(found, key=lambda data: data.name)


def exported_values() -> list[AppData]:
    return [data for data in app_data if data.form]
