r"""The recipe of the bundled models: corpus, tokenizer, training, measures and cards.

To make the family from nothing (two CPU cores, about two hours; add ``--workers 1`` for one):

1. **Corpus.** Stories and records from this package's grammars, novels from a package of
   public-domain texts, one byte-level tokenizer of 2,048 tokens for all::

       python -m specviz.models.training.corpus --work CORPUS --prose NOVELS

2. **Target, constant rate.** Sixteen layers of width 256. Short windows first, then the full
   context. Stop when you like (Ctrl-C, ``--minutes``, ``--steps``): every few minutes, and at
   the end, the run folder gets a checkpoint, and the same command goes on from there, with
   exactly the batches that would have come::

       python -m specviz.models.training target --corpus CORPUS --run RUN \
           --context 256 --minutes 40 --workers 2
       python -m specviz.models.training target --corpus CORPUS --run RUN --minutes 40 --workers 2

3. **Target, cooldown.** The learning rate falls to 0, the loss with it. It starts from the last
   checkpoint of step 2 and leaves that alone, so step 2 can go on later::

       python -m specviz.models.training target --corpus CORPUS --run RUN \
           --cooldown 500 --workers 2

4. **Draft.** One layer, distilled on the target's distributions over corpus text and over text
that the
   target writes::

       python -m specviz.models.training draft --corpus CORPUS --target-run RUN --run DRAFT \
           --workers 2

5. **Export.** Two Hugging Face directories. They are measured as users will load them, and
   published only if the target beats its draft in every domain; the cards are written from
   those measurements::

       python -m specviz.models.training export --corpus CORPUS --target-run RUN \
           --draft-run DRAFT --out OUT

6. **Drafts to compare with**, of the same size, trained on text alone (``text-only``), or on
   another domain (``prose-only``)::

       python -m specviz.models.training baseline --corpus CORPUS --run BASE \
           --name text-only --models OUT

7. **Heads.** Medusa and EAGLE heads for the exported target; ``heads`` says how it was done::

       python -m specviz.models.training.heads --target OUT/target --corpus CORPUS \
           --run HEADS --out OUT --kind medusa

``network`` has the forward pass, ``target`` and ``draft`` the two losses, ``optimizers`` Muon and
the schedule, ``batches`` says which tokens a step reads, ``parallel`` splits them.
"""
