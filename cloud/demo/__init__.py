"""The main job end to end, as a program: real processes, real questions, real pages, answers that are checked."""
