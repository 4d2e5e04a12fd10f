import { useChat } from '@ai-sdk/react'
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

const id = (localStorage.chat ??= crypto.randomUUID())

function Page({ messages: stored }) {
  const [text, setText] = useState('')
  const { messages, sendMessage, regenerate, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: stored,
    resume: true, // an answer that is being written continues
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const isBusy = status === 'submitted' || status === 'streaming'
  const stop = () => void fetch(`/api/chat/${id}/stop`, { method: 'POST' })
  const send = (event) => {
    event.preventDefault()
    void sendMessage({ text })
    setText('')
  }
  return (
    <main>
      {messages.map(({ id: message, role, parts }) => (
        <article key={message} className={role}>
          {parts.map((part, i) => (
            <Part key={i} part={part} answer={addToolApprovalResponse} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        {isBusy ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button>Send</button>
        )}
        <button type="button" onClick={() => void regenerate()}>
          Answer again
        </button>
      </form>
    </main>
  )
}

function Part({ part, answer }) {
  if (part.type === 'text') return <p>{part.text}</p>
  if (part.type === 'reasoning') return <em>{part.text}</em>
  if (part.toolCallId === undefined) return null
  const { approval } = part
  return (
    <pre>
      {part.type.slice(5)} {JSON.stringify(part.input)} {part.output ?? part.errorText ?? part.state}
      {part.state === 'approval-requested' && (
        <>
          <button onClick={() => void answer({ id: approval.id, approved: true })}>Allow</button>
          <button onClick={() => void answer({ id: approval.id, approved: false })}>Block</button>
        </>
      )}
    </pre>
  )
}

const response = await fetch(`/api/chat/${id}`)
createRoot(document.body).render(<Page messages={await response.json()} />)
