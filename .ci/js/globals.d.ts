// Put in front of the player's modules by specviz/player/assets.py.
declare const SVP_STYLE: string;
