"""Run folders: what a run leaves on the disk, and how it continues from there after any kind of end.

``trial.run_trial`` runs one call of the macro loop, ``stages.FolderStages`` keeps arrays that are computed once,
``folder.RunFolder`` is the folder itself: ``config.json``, ``metrics.jsonl``, ``trace.bin``, ``checkpoints/``,
``plots/`` and, once the run is finished, ``summary.json``.
"""
