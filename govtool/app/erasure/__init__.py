"""Erasure of a data subject on the rows of recorded runs.

:mod:`chain <govtool.app.erasure.chain>` puts recorded writes in order, by the files that they exchange.
:mod:`dataset_names <govtool.app.erasure.dataset_names>` says which datasets a name means,
:mod:`keys <govtool.app.erasure.keys>` resolves the subject and the columns that hold its key,
:mod:`relations <govtool.app.erasure.relations>` the files that are one relation of a workflow, and
:mod:`search <govtool.app.erasure.search>` finds its rows.
:mod:`corrections <govtool.app.erasure.corrections>` is a plan over corrected inputs,
:mod:`step <govtool.app.erasure.step>` evaluates it,
:mod:`decided <govtool.records.replay.decided>` judges its certainty.
:mod:`driver <govtool.app.erasure.driver>` tells what passed through the driver,
:mod:`hanging <govtool.app.erasure.hanging>` which writes of programs hang on that,
:mod:`module_jobs <govtool.app.erasure.module_jobs>` which functions of modules ran jobs, and on what,
:mod:`plan <govtool.app.erasure.row_plan>` goes through the chain, and
:mod:`found <govtool.app.erasure.found>` has its results.
:mod:`copies <govtool.app.erasure.copies>` and :mod:`lines <govtool.app.erasure.lines>` write corrected files,
:mod:`corrected <govtool.app.erasure.corrected>` those of a dataset, verified,
:mod:`partitions <govtool.app.erasure.partitions>` removes partitions that are left without rows,
:mod:`apply <govtool.app.erasure.apply>` all of them, and
:mod:`certify <govtool.app.erasure.certify>` makes the certificate and checks it again;
:mod:`certificate_keys <govtool.app.erasure.certificate_keys>` has the keys that the check relies on.
"""
