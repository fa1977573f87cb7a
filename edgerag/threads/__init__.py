"""Conversations: kept, found again, continued, exported. They are the user's own words and stay on this machine."""
