// The page of `hookloop serve`, without packages and without a build. Texts of models and tools are only ever set as text.

export const pageHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>hookloop serve</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/chat.css">
<script type="module" src="/chat.js"></script>
</head>
<body>
<header><select id="chats" aria-label="Chat"></select><button id="new">New chat</button></header>
<main id="messages" aria-live="polite"></main>
<p id="problem" role="alert" hidden></p>
<form id="form">
<textarea id="text" rows="2" aria-label="Message" placeholder="Message" autofocus></textarea>
<button id="send">Send</button><button id="stop" type="button" hidden>Stop</button>
<button id="again" type="button" hidden>Answer again</button>
</form>
</body>
</html>
`

export const pageCss = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { display: flex; flex-direction: column; height: 100dvh; max-width: 52rem; margin: auto; padding: .75rem; box-sizing: border-box; gap: .5rem }
header, form { display: flex; gap: .5rem }
select, textarea { flex: 1; min-width: 0; font: inherit; padding: .4rem }
button { font: inherit; padding: .3rem .8rem }
main { flex: 1; overflow-y: auto }
article { margin: .75rem 0; white-space: pre-wrap; overflow-wrap: anywhere }
article.user { border-left: 3px solid; padding-left: .6rem }
.reasoning, .note { opacity: .7 }
.reasoning { font-style: italic }
.tool { border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: .4rem; margin: .4rem 0; padding: .3rem .6rem; font: .875rem/1.4 ui-monospace, monospace }
.question { border-width: 2px }
#problem { margin: 0; color: light-dark(#b00020, #ff8a9a) }
`

export const pageScript = String.raw`const $ = (id) => document.getElementById(id)
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? sessionStorage.getItem('token')
sessionStorage.setItem('token', token ?? '')
history.replaceState(null, '', location.pathname)
let chat = sessionStorage.getItem('chat') ?? crypto.randomUUID()
let messages = []
let busy
let opened

async function api(path, options = {}) {
  const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json', ...options.headers }
  const response = await fetch('/api/' + path, { ...options, headers })
  if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status })
  return response
}

// Follows an answer. A connection that breaks is continued after the last chunk that arrived.
async function follow(start) {
  const own = (busy = {})
  let lastId
  show()
  try {
    for (let response = await start(); response.status !== 204; ) {
      try {
        for await (const { id, data } of events(response.body)) {
          if (own !== busy || data === '[DONE]') return
          apply(JSON.parse(data))
          lastId = id ?? lastId
          show()
        }
        return
      } catch (error) {
        if (!(error instanceof TypeError)) throw error
        response = await api('chat/' + encodeURIComponent(chat) + '/stream', { headers: lastId ? { 'last-event-id': lastId } : {} })
      }
    }
  } finally {
    if (own === busy) busy = undefined
    show()
    await list()
  }
}

async function* events(body) {
  let text = ''
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const parts = (text + piece).split('\n\n')
    text = parts.pop()
    for (const part of parts) {
      const field = (name) => part.split('\n').find((line) => line.startsWith(name + ': '))?.slice(name.length + 2)
      if (field('data') !== undefined) yield { id: field('id'), data: field('data') }
    }
  }
}

function apply(chunk) {
  if (chunk.type === 'start') {
    const known = messages.findIndex(({ id }) => id === chunk.messageId)
    if (known === -1) messages.push({ id: chunk.messageId, role: 'assistant', parts: [] })
    return
  }
  const message = messages.at(-1)
  const { parts } = message
  const call = parts.findLast(({ toolCallId }) => toolCallId === chunk.toolCallId)
  const block = /^(text|reasoning)-(start|delta)$/.exec(chunk.type)
  if (block?.[2] === 'start') parts.push({ type: block[1], block: chunk.id, text: '' })
  else if (block) parts.findLast((part) => part.block === chunk.id).text += chunk.delta
  else if (chunk.type === 'start-step') parts.push({ type: 'step-start' })
  else if (chunk.type === 'reset-step') parts.splice(parts.findLastIndex(({ type }) => type === 'step-start') + 1)
  else if (chunk.type === 'tool-input-start' || chunk.type === 'tool-input-available') {
    const { toolCallId, toolName, input, title } = chunk
    const part = { type: 'tool-' + toolName, toolCallId, input, title, state: 'input-available' }
    if (call && chunk.toolCallId) Object.assign(call, part)
    else parts.push(part)
  } else if (chunk.type === 'tool-approval-request') {
    const { approvalId: id, reason: requestReason, approvalDescriptor: descriptor } = chunk
    Object.assign(call, { state: 'approval-requested', approval: { id, requestReason, descriptor } })
  } else if (chunk.type === 'tool-approval-response') {
    const asked = parts.find(({ approval }) => approval?.id === chunk.approvalId)
    Object.assign(asked, { state: 'approval-responded' })
    Object.assign(asked.approval, { approved: chunk.approved, reason: chunk.reason })
  } else if (chunk.type === 'tool-output-available') Object.assign(call, { state: 'output-available', output: chunk.output })
  else if (chunk.type === 'tool-output-error') Object.assign(call, { state: 'output-error', errorText: chunk.errorText })
  else if (chunk.type === 'tool-output-denied') call.state = 'output-denied'
  else if (chunk.type === 'error') problem(chunk.errorText)
  if (chunk.messageMetadata) message.metadata = { ...message.metadata, ...chunk.messageMetadata }
}

function element(name, text, className = '') {
  return Object.assign(document.createElement(name), { textContent: text, className })
}

function partElement(part) {
  if (part.type === 'text') return element('div', part.text)
  if (part.type === 'reasoning') return element('div', part.text, 'reasoning')
  if (part.type === 'file') return element('div', '[' + (part.filename ?? part.mediaType) + ']', 'note')
  if (!part.toolCallId) return element('span', '')
  const { state, approval, output } = part
  const box = element('div', '', 'tool')
  const result = { 'output-available': typeof output === 'string' ? output : JSON.stringify(output), 'output-error': part.errorText }
  const blocked = state === 'output-denied' ? 'Blocked: ' + (approval?.reason ?? '') : undefined
  box.append(element('div', (part.title ?? part.type.slice(5)) + ' ' + (JSON.stringify(part.input) ?? '')))
  box.append(element('div', result[state] ?? blocked ?? '', 'note'))
  if (state !== 'approval-requested') return box
  box.className = 'tool question'
  box.append(element('div', approval.requestReason))
  if (approval.descriptor?.mayAnswer === false) box.append(element('div', 'Waits for an approver.', 'note'))
  else for (const [label, approved] of [['Allow', true], ['Block', false]]) {
    const button = element('button', label)
    button.onclick = () => answer(part, approved)
    box.append(button)
  }
  return box
}

function show() {
  const isAtEnd = $('messages').scrollHeight - $('messages').scrollTop - $('messages').clientHeight < 80
  $('messages').replaceChildren(...messages.map(({ role, parts, metadata }) => {
    const article = element('article', '', role)
    article.append(...parts.map(partElement))
    if (metadata?.status === 'stopped') article.append(element('div', 'Stopped: ' + metadata.message, 'note'))
    return article
  }))
  if (isAtEnd) $('messages').scrollTop = $('messages').scrollHeight
  $('send').hidden = busy !== undefined
  $('stop').hidden = busy === undefined
  $('again').hidden = busy !== undefined || messages.length === 0
}

function problem(text) {
  $('problem').textContent = text
  $('problem').hidden = !text
}

const post = (body) => () => api('chat', { method: 'POST', body: JSON.stringify({ id: chat, trigger: 'submit-message', ...body }) })
const tried = (act) => async (...given) => {
  problem('')
  try {
    await act(...given)
  } catch (error) {
    problem(error.status === 401 ? 'Open the address that the terminal shows.' : error.message)
  }
}

const answer = tried(async (part, approved) => {
  Object.assign(part, { state: 'approval-responded' })
  Object.assign(part.approval, { approved })
  show()
  const open = messages.at(-1).parts.some(({ state, approval }) => state === 'approval-requested' && approval.descriptor?.mayAnswer !== false)
  if (!open) await follow(post({ messages: messages.slice(-1) }))
})

const send = tried(async () => {
  await opened // else what is loaded would replace the message
  const text = $('text').value.trim()
  if (text === '' || busy) return
  $('text').value = ''
  messages.push({ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] })
  await follow(post({ messages: messages.slice(-1) }))
})

const open = tried(async (id) => {
  busy = undefined
  chat = id
  sessionStorage.setItem('chat', chat)
  const opening = load(id)
  opened = opening.catch(() => undefined)
  const { loaded, response } = await opening
  if (chat !== id) return
  messages = loaded
  if (response.status === 204) {
    show()
    return list()
  }
  if (messages.at(-1)?.role === 'assistant') messages.pop() // it is sent from its start
  await follow(() => response)
})

async function load(id) {
  const loaded = await (await api('chat/' + encodeURIComponent(id))).json()
  return { loaded, response: await api('chat/' + encodeURIComponent(id) + '/stream') }
}

async function list() {
  const chats = await (await api('chat')).json()
  if (!chats.some(({ id }) => id === chat)) chats.unshift({ id: chat, title: 'New chat' })
  $('chats').replaceChildren(...chats.map(({ id, title }) => Object.assign(element('option', title), { value: id, selected: id === chat })))
}

$('form').onsubmit = (event) => {
  event.preventDefault()
  void send()
}
$('text').onkeydown = (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) $('form').onsubmit(event)
}
$('stop').onclick = tried(() => api('chat/' + encodeURIComponent(chat) + '/stop', { method: 'POST' }))
$('again').onclick = tried(async () => {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  messages = messages.slice(0, last + 1)
  await follow(post({ trigger: 'regenerate-message', messages: messages.slice(-1) }))
})
$('chats').onchange = () => void open($('chats').value)
$('new').onclick = () => void open(crypto.randomUUID())
void open(chat)
`
