"""The player: a run watched token by token, in a notebook or on a page of its own.

How the parts fit
-----------------
::

    Trace ──projection.py──▶ header + columns ──pack()──▶ bytes ──gzip──▶ widget trait or page
             │                                                             │
             └─ steps/   what there is to see at each step, worked out     │
                         once: phases, fates, sentences, trees, caches     │
    js/decode.js ◀─────────────────────────────────────────────────────────┘
      ├─ timeline.js   position (round, phase, node) ⇄ step number; jumps, search, links
      ├─ frame.js      frameAt(data, time, step): all there is to see at a step, looked up
      ├─ words.js      the sentences of a step, their blanks filled
      ├─ view_*.js     one view a file: a pure part (…At(data, frame)) and mount() → update(frame)
      ├─ contests.js, walk.js, block.js   of the draw: races; what another u would lead to
      ├─ predict.js, controls.js, focus.js, playback.js   modes, keys and buttons, the clock
      ├─ player.js     puts them together: mountPlayer(el, data, model)
      ├─ race.js       several runs on one clock of measured time (race_time.js: its pure part)
      ├─ live.js       a run in progress: its controls, above a player that grows
      ├─ main.js       render({ model, el }): what a model's ``kind`` mounts (mounting.js)
      └─ standalone.js the page's entry; shim.js stands in for a widget's model

    lab.js, lab_page.js    a second entry, sent only where it is used
      ├─ one_position.js   one position as a program, read by a sampler and by an enumerator
      │    └─ philox.js, faults_at_one.js, chance_numbers.js: as Python's, and compared with it
      ├─ editor.js         bars that are dragged, one draw, many draws (editor_*.js, editing.js)
      └─ watch.js          samples watched as they come (watch_*.js, eprocess.js), drawn by Python
                           (watch_widget.py, a worker thread) or by the page itself

``assets.py`` joins the modules into one script (no bundler) and writes the palettes in front of
``css/``. ``page.py`` writes the self-contained page, ``widget.py`` is the anywidget. Both hand the
same script the same four values: ``kind``, ``data`` (a list of packed runs), ``options`` and
``step`` / ``round``; the script uses only ``model.get/set/on/off/save_changes``. In a notebook
the script lies in one model that every widget names, so it is sent once a kernel.

``live.py`` is :func:`specviz.play_live`. Its widget runs the model in a thread and hands out the
packed run so far, a few times a second; the page asks by messages
(``{"ask": "run", "settings": …}``, ``{"ask": "cancel"}``). A view whose drawing sums up the whole
run at mount has ``grown()``, called when there are more rounds.

The same without a browser: ``picture/`` draws a frame of ``steps/`` as a scene and paints it with
Pillow (pixels) or matplotlib (vectors): ``still.py`` and ``film.py``, the picture of a widget, and
that of a page for readers without scripts. ``tests/player/test_sentences.py`` compares what is said
with the record.

To add a view, write ``js/view_name.js`` with ``name``, ``title`` and ``mount(data, time, player)``
and name it in ``VIEWS`` of ``player.js``. To add another widget, write its module and its entry
in ``MOUNTS`` of ``main.js``, or of an entry of its own such as ``lab.js``. Names are global once
joined: two modules must not share one, and an exported name stands first on its line.
Token text is untrusted: it is made visible in Python and set with ``textContent`` only.
"""
