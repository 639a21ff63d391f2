"""The other engines, each driven as its documentation says, in the fastest form that keeps a history."""
