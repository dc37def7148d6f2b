"""The demo model: a chat model that runs in this process, without key or network."""
