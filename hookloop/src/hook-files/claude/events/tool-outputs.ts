import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'

/** Converts the output of a tool to the shape of Claude Code, and back. */
type Shape = {
  readonly to: (text: string, input: JsonObject) => JsonObject
  readonly from?: (given: JsonObject) => Json | undefined
}

const STDERR = /(?:^|\n)STDERR:\n/

const shapes: { readonly [ours: string]: Shape } = {
  bash: {
    to: (text) => {
      const at = STDERR.exec(text)
      const stdout = at === null ? text : text.slice(0, at.index)
      const stderr = at === null ? '' : text.slice(at.index + at[0].length)
      return { stdout, stderr, interrupted: false, isImage: false, noOutputExpected: false }
    },
    from: ({ stdout, stderr }) =>
      typeof stdout !== 'string'
        ? undefined
        : typeof stderr === 'string' && stderr !== ''
          ? `${stdout}\nSTDERR:\n${stderr}`
          : stdout,
  },
  read_file: {
    to: (content, { file_path }) => {
      const lines = content.split('\n').length
      return {
        type: 'text',
        file: { filePath: file_path ?? '', content, numLines: lines, startLine: 1, totalLines: lines },
      }
    },
    from: ({ file }) => (isJsonObject(file) && typeof file['content'] === 'string' ? file['content'] : undefined),
  },
  write_file: {
    to: (_text, { file_path, content }) => ({
      type: 'create',
      filePath: file_path ?? '',
      content: content ?? '',
      structuredPatch: [],
      originalFile: null,
      userModified: false,
    }),
  },
  edit_file: {
    to: (_text, { file_path, old_string, new_string, replace_all }) => ({
      filePath: file_path ?? '',
      oldString: old_string ?? '',
      newString: new_string ?? '',
      originalFile: null,
      structuredPatch: [],
      userModified: false,
      replaceAll: replace_all === true,
    }),
  },
}

/** The output of a tool as `tool_response`. Unknown tools have their own shape. */
export function toClaudeOutput(tool: string, output: Json, input: JsonObject): Json {
  const shape = shapeFor(tool)
  return shape === undefined || typeof output !== 'string' ? output : shape.to(output, input)
}

/** An output from a script as tool output. Undefined if it cannot be converted. */
export function fromClaudeOutput(tool: string, given: Json): Json | undefined {
  const shape = shapeFor(tool)
  return shape === undefined || !isJsonObject(given) ? given : shape.from?.(given)
}

/** In Claude Code, a command with an exit code other than 0 is a failed call. Returns its error. */
export function failureIn(tool: string, output: Json): string | undefined {
  if (tool !== 'bash' || typeof output !== 'string') return undefined
  const code = /^Exit code: (\w+)(?:\n|$)/.exec(output)
  return code === null ? undefined : `Exit code ${code[1]}\n${output.slice(code[0].length)}`
}

function shapeFor(tool: string): Shape | undefined {
  return Object.hasOwn(shapes, tool) ? shapes[tool] : undefined
}
