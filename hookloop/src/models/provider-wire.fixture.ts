import { isJsonObject, textOfJson, type Json, type JsonObject } from '../values/json.ts'

// The content of a request in a format that is the same for all providers, one line per item:
//
//   system: Be brief.
//   user: What is in a.txt?
//   user: file image/png
//   thought: I have to look. (sealed)
//   call c1 read {"path":"a.txt"}
//   result c1 hello
//   model: It says hello.

export type Wire = 'responses' | 'messages' | 'gemini' | 'chat'

export function readRequest(wire: Wire, body: JsonObject): readonly string[] {
  return readers[wire](body).flat()
}

const readers: { readonly [W in Wire]: (body: JsonObject) => readonly (readonly string[])[] } = {
  responses: (body) => objects(body['input']).map(readItem),
  messages: (body) => [
    objects(body['system']).map(({ text }) => `system: ${words(text)}`),
    ...objects(body['messages']).map(({ role, content }) => objects(content).flatMap((part) => readBlock(role, part))),
  ],
  gemini: (body) => [
    objects(object(body['systemInstruction'])['parts']).map(({ text }) => `system: ${words(text)}`),
    ...objects(body['contents']).map(({ role, parts }) => objects(parts).map((part) => readGeminiPart(role, part))),
  ],
  chat: (body) => objects(body['messages']).map(readChatMessage),
}

function readItem(item: JsonObject): readonly string[] {
  switch (item['type']) {
    case 'reasoning': {
      const text = objects(item['summary'])
        .map((part) => words(part['text']))
        .join('')
      const sealed = typeof item['encrypted_content'] === 'string' ? ' (sealed)' : ''
      return text === '' ? [] : [`thought: ${text}${sealed}`] // an empty one comes with every reply
    }
    case 'function_call':
      return [`call ${words(item['call_id'])} ${words(item['name'])} ${words(item['arguments'])}`]
    case 'function_call_output':
      return [`result ${words(item['call_id'])} ${unwrapped(item['output'])}`]
    default: {
      const who = speaker(item['role'])
      if (typeof item['content'] === 'string') return [`${who}: ${item['content']}`]
      return objects(item['content']).map((part) => {
        const data = words(part['image_url'] ?? part['file_data'])
        return data === '' ? `${who}: ${words(part['text'])}` : `${who}: file ${mediaTypeOf(data)}`
      })
    }
  }
}

function readBlock(role: Json | undefined, block: JsonObject): readonly string[] {
  switch (block['type']) {
    case 'text':
      return [`${speaker(role)}: ${words(block['text'])}`]
    case 'thinking':
      return [`thought: ${words(block['thinking'])}${block['signature'] === undefined ? '' : ' (sealed)'}`]
    case 'tool_use':
      return [`call ${words(block['id'])} ${words(block['name'])} ${words(block['input'])}`]
    case 'tool_result':
      return [`result ${words(block['tool_use_id'])} ${textIn(block['content'])}`]
    case 'image':
    case 'document':
      return [`${speaker(role)}: file ${words(object(block['source'])['media_type'])}`]
    default:
      return [`? ${JSON.stringify(block)}`]
  }
}

function readGeminiPart(role: Json | undefined, part: JsonObject): string {
  const { functionCall, functionResponse, inlineData, text } = part
  if (isJsonObject(functionCall))
    return `call ${words(functionCall['id'])} ${words(functionCall['name'])} ${words(functionCall['args'])}`
  if (isJsonObject(functionResponse)) {
    return `result ${words(functionResponse['id'])} ${unwrapped(functionResponse['response'])}`
  }
  if (isJsonObject(inlineData)) return `${speaker(role)}: file ${words(inlineData['mimeType'])}`
  if (part['thought'] === true)
    return `thought: ${words(text)}${part['thoughtSignature'] === undefined ? '' : ' (sealed)'}`
  return text === undefined ? `? ${JSON.stringify(part)}` : `${speaker(role)}: ${words(text)}`
}

function readChatMessage({
  role,
  content,
  tool_calls: calls,
  tool_call_id: id,
  reasoning_content: thought,
}: JsonObject) {
  if (role === 'tool') return [`result ${words(id)} ${textIn(content)}`]
  const said = typeof content === 'string' ? [{ type: 'text', text: content }] : objects(content)
  return [
    ...(thought === undefined ? [] : [`thought: ${words(thought)}`]),
    ...said
      .filter((part) => part['text'] !== '')
      .map((part) => {
        const data = words(object(part['image_url'])['url'] ?? object(part['file'])['file_data'])
        return data === '' ? `${speaker(role)}: ${words(part['text'])}` : `${speaker(role)}: file ${mediaTypeOf(data)}`
      }),
    ...objects(calls).map((call) => {
      const { name, arguments: args } = object(call['function'])
      return `call ${words(call['id'])} ${words(name)} ${words(args)}`
    }),
  ]
}

function speaker(role: Json | undefined): string {
  return { developer: 'system', assistant: 'model' }[words(role)] ?? words(role)
}

function mediaTypeOf(data: string): string {
  return /^data:([^;,]+)/.exec(data)?.[1] ?? data
}

/** Some providers wrap results and errors in different objects. */
function unwrapped(result: Json | undefined): string {
  const { content, error, ...rest } = object(
    typeof result === 'string' && result.startsWith('{"error"') ? (JSON.parse(result) as Json) : result,
  )
  return words(content ?? error ?? (Object.keys(rest).length > 0 ? rest : result))
}

function textIn(content: Json | undefined): string {
  return Array.isArray(content)
    ? objects(content)
        .map(({ text }) => words(text))
        .join('')
    : words(content)
}

function words(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  return textOfJson(value)
}

function object(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

function objects(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(object) : []
}
