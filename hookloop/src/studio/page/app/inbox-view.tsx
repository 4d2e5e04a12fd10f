import { useRef } from 'preact/hooks'
import type { Question } from '../../run.types.ts'
import { QuestionCard } from './question.tsx'
import { count } from './format.ts'
import { inbox } from './studio.ts'

/** Questions of all sessions. One that was answered stays until the user leaves, so that the answer can be read. */
export function InboxView() {
  const seen = useRef(new Map<string, Question>())
  const waiting = inbox.value
  if (waiting === undefined) return <div class="empty">Loading …</div>
  for (const question of waiting) seen.current.set(`${question.session} ${question.id} ${question.hash}`, question)
  return (
    <main class="page">
      <header class="page-head">
        <h1>Inbox</h1>
        <p class="quiet">{waiting.length === 0 ? 'nothing waits' : `${count(waiting.length, 'question')} waiting`}</p>
      </header>
      {seen.current.size === 0 && (
        <div class="empty">
          <p>No run waits for an answer.</p>
          <p class="quiet">
            A guard asks with <code>ctx.ask('Push to main?')</code>. The question appears here, whichever process runs
            the agent.
          </p>
        </div>
      )}
      {[...seen.current].map(([key, question]) => (
        <QuestionCard key={key} question={question} linked />
      ))}
    </main>
  )
}
