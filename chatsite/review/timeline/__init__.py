"""The timeline of a conversation, and a reply under the glass."""
