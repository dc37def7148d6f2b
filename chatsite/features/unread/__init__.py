"""The unread news of a user's conversations.

These are replies, failures, questions, and news of other apps, such as reminders.
"""
