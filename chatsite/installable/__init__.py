"""The site as an app of phones and desktops, as a leaf app: its manifest and icons, and
a page that is shown without the network.
"""
