"""The site as an app of phones and desktops: its manifest and icons, and
a page that is shown without the network.
"""
