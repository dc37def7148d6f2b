"""The archives that ChatGPT, Claude and DeepSeek send to their users, as imports."""
