"""Recording inside a job: imports the standard library only, and never breaks the job.

Files of this folder are what a job starts: ``hook`` watches for sessions, ``process`` has the one recorder,
``listener`` hears of executions, ``streams`` and ``connect`` cover what a listener does not hear, ``stopping`` waits
before a context stops, ``spool`` keeps it all in one file a process. The rooms below them:

* ``job``: the script, its arguments and software (``facts``), ``settings`` of an execution; ``cleaned`` keeps logins
  out.
* ``plans``: an execution's plans. ``catalyst`` is the analyzed one, of which ``trimmed`` keeps what lineage needs, and
  ``relations``, ``commands`` and ``definitions`` fetch what its JSON leaves out; ``physical`` has the figures.
* ``driver``: data that passes through the driver.
* ``records``: where records were requested, ``exact`` writes whole plans, ``stream_batches`` knows those of batches,
  and ``eager`` keeps positions of rows, by plans that ``carried`` rewrites.
* ``jvm``: py4j, Scala and Hadoop; calls that are fetched together; classes compiled in the session.
* ``replay``: the process of a replay by a script.

Code here runs in the interpreter of the job, which may be older than govtool's own: Python 3.8. ``replay`` alone runs
under govtool's own.
"""
