r"""The recipe of the bundled models: corpus, tokenizer, training, measures and cards.

To make the family from nothing (two CPU cores, some hours); every command goes on where it was
stopped when it is repeated, and ``R`` stands for ``python -m specviz.models.training.bundled``:

1. **Corpus.** Stories and records from this package's grammars, novels from a package of
   public-domain texts, one byte-level tokenizer of 4,096 tokens for all::

       R corpus --work CORPUS --prose r-cran-janeaustenr.deb

2. **Target, constant rate.** Sixteen layers of width 256. Short windows first, then the full
   context. Stop when you like (Ctrl-C, ``--minutes``, ``--steps``): every few minutes, and at
   the end, the run folder gets a checkpoint, and the same command goes on from there, with
   exactly the batches that would have come::

       R target --corpus CORPUS --run RUN --context 256 --workers 2 --minutes 60
       R target --corpus CORPUS --run RUN --context 512 --workers 2 --minutes 120

3. **Target, cooldown.** The learning rate falls to 0, the loss with it. It starts from the last
   checkpoint of step 2 and leaves that alone, so step 2 can go on later::

       R target --corpus CORPUS --run RUN --cooldown 800 --workers 2

4. **Draft.** One layer, distilled on the target's distributions over corpus text and over text
   that the target writes::

       R distil --kind draft --target RUN --corpus CORPUS --run DISTIL \
           --steps 3000 --rows 8 --piece 512

5. **Export.** Two Hugging Face directories. They are measured as users will load them, and
   published only if the target beats its draft in every domain; the cards are written from
   those measurements::

       R export --corpus CORPUS --target-run RUN --draft-run DISTIL --out OUT

6. **Drafts to compare with**, of the same size, trained on text alone (``text-only``), or on
   another domain (``prose-only``)::

       R baseline --corpus CORPUS --run BASE --name text-only --models OUT

7. **Heads** for the exported target. An EAGLE head that starts as the distilled draft has to
   learn only what the features add; it needs small steps, or it first forgets the draft::

       R distil --kind eagle --target OUT/target --corpus CORPUS --run DISTIL --out OUT \
           --draft OUT/draft --rate 0.08 --rows 8 --steps 600 --ablation
       R distil --kind medusa --target OUT/target --corpus CORPUS --run DISTIL --out OUT \
           --rows 4 --steps 1600
       R distil --kind parallel --target OUT/target --corpus CORPUS --run DISTIL --out OUT \
           --rows 8 --steps 1600

``R text-quality --target OUT/target --corpus CORPUS`` compares editions: nats per character,
words that are one token, words that occur nowhere in the corpus.

``llama`` has the forward pass and the sampling, ``target`` the losses, the workers and the loop,
``batches`` says which tokens a step reads, ``distil`` trains what learns from the target.
"""
