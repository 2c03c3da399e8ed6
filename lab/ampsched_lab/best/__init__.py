"""The policy abreast against all others, and against what no policy can beat."""
