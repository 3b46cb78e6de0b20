"""The player: a run watched token by token, in a notebook or on a page of its own.

How the parts fit
-----------------
::

    Trace ──projection.py──▶ header + columns ──pack()──▶ bytes ──gzip──▶ widget trait or page
                                                                           │
    js/decode.js ◀─────────────────────────────────────────────────────────┘
      ├─ timeline.js   position (round, phase, node) ⇄ step number; jumps, search, links
      ├─ frame.js      frameAt(data, time, step): all there is to see at a step, pure
      ├─ words.js      captions and numbers of a frame, pure
      ├─ block.js, judging.js      block verification's tests; what each rule asks
      ├─ view_*.js     one view a file: a pure part (…At(data, frame)) and mount() → update(frame)
      ├─ contests.js, walk.js      of the draw: what decides without a u; what another u leads to
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
the script lies in one model (``script.py``) that every widget names, so it is sent once a kernel.

``live.py`` is :func:`specviz.play_live`. Its widget (``live_widget.py``) runs the model in a
thread and hands out the packed run so far, a few times a second; the page asks by messages
(``{"ask": "run", "settings": …}``, ``{"ask": "cancel"}``). A view whose drawing sums up the whole
run at mount has ``grown()``, called when there are more rounds.

The same without a browser: ``run.py`` is ``decode.js`` in Python, ``frames.py`` is ``timeline.js``,
``frame.js`` and ``block.js``, ``captions.py`` is ``words.js`` and ``judging.js``; ``view_state.py``
and ``draw_state.py`` (with ``contests.js``) are the pure halves of the views.
``tests/player/test_frames.py`` compares them frame by frame, so a change to one side needs the
same on the other; ``test_sentences.py`` compares what they say with the record. ``picture/``
draws a frame as a scene and paints it with Pillow (pixels) or matplotlib (vectors): ``still.py``
and ``film.py``, the picture of a widget, and that of a page for readers without scripts.

To add a view, write ``js/view_name.js`` with ``name``, ``title`` and ``mount(data, time, player)``
and name it in ``VIEWS`` of ``player.js``. To add another widget, write its module and its entry
in ``MOUNTS`` of ``main.js``, or of an entry of its own such as ``lab.js``. Names are global once
joined: two modules must not share one, and an exported name stands first on its line.
Token text is untrusted: it is made visible in Python and set with ``textContent`` only.
"""
