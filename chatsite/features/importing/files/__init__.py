"""Files that people import, read and checked: from an upload to drafts."""
