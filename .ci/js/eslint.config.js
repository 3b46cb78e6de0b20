// What the player's JavaScript must keep to; Python has ruff. tsc checks the types in its JSDoc.

import js from "@eslint/js";
import globals from "globals";

const LONGEST_LINE = 100;

/** A line of text cannot always be broken; code can. */
const lines = {
  meta: { type: "layout", schema: [] },
  create: (context) => ({
    Program() {
      context.sourceCode.lines.forEach((line, i) => {
        if (line.length > LONGEST_LINE)
          context.report({
            loc: { line: i + 1, column: LONGEST_LINE },
            message: `This line has ${line.length} columns, of ${LONGEST_LINE} at most.`,
          });
      });
    },
  }),
};

export default [
  js.configs.recommended,
  {
    languageOptions: {
      ecmaVersion: 2023,
      sourceType: "module",
      globals: { ...globals.browser, SVP_STYLE: "readonly" },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    plugins: { own: { rules: { lines } } },
    rules: {
      "own/lines": "error",
      "max-lines-per-function": ["error", { max: 200, skipComments: true, skipBlankLines: true }],
      "no-shadow": "error",
      "no-unused-vars": ["error", { args: "after-used" }],
      "no-var": "error",
      "prefer-const": "error",
      eqeqeq: "error",
    },
  },
  { files: ["**/tests/**"], languageOptions: { globals: globals.node } },
];
