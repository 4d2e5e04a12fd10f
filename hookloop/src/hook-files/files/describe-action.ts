import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { shortOption } from './hook-file.ts'
import { actionKinds } from './hook-file-schema.ts'

/** The complete command, URL or prompt of an entry, and its other options, for users who decide whether to trust it. */
export function describeAction(entry: JsonObject): { readonly runs: string; readonly more?: JsonObject } {
  const kind = actionKinds.find((each) => entry[each] !== undefined)
  const given = kind === undefined ? undefined : entry[kind]
  if (kind === undefined || given === undefined) return { runs: '' }
  const options = isJsonObject(given) ? given : { [shortOption[kind]]: given }
  const { command, args, url, prompt, model, name, event, type: _type, ...rest } = options
  const more = Object.keys(rest).length === 0 ? {} : { more: rest }
  switch (kind) {
    case 'shell':
      return { runs: lineOf(command, args), ...more }
    case 'http':
      return { runs: `POST ${text(url)}`, ...more }
    case 'prompt':
      return { runs: `calls ${text(model) || 'the model of the agent'}: ${text(prompt)}`, ...more }
    case 'subagent':
      return { runs: `${['agent', text(name), text(model)].filter(Boolean).join(' ')}: ${text(prompt)}`, ...more }
    case 'claude':
      return { runs: `${text(event)}: ${url === undefined ? lineOf(command, args) : `POST ${text(url)}`}`, ...more }
    default:
      return kind satisfies never
  }
}

/** Arguments with special characters are quoted. */
function lineOf(command: Json | undefined, args: Json | undefined): string {
  const words = Array.isArray(args) ? args.map((each) => quoted(text(each as Json))) : []
  return [...(command === undefined ? [] : [text(command)]), ...words].join(' ')
}

function quoted(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word)
}

function text(value: Json | undefined): string {
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
}
