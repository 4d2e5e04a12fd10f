import type { StoredStep } from '../../../core/state/stored-run.ts'
import type { Comparison } from '../../api.types.ts'
import { call } from './api.ts'
import { Arguments } from './diff.tsx'
import { shortCount, count, money } from './format.ts'
import { Loaded, Status, useLoaded, Warnings } from './load.tsx'
import { link, type Place } from './router.ts'
import { LongText, safe, textOf } from './text.tsx'

/** Two runs beside each other, step by step. Steps that are the same are closed. */
export function CompareView({ a, b }: { readonly a: Place; readonly b: Place }) {
  const loaded = useLoaded((signal) => call('compare', { a, b }, signal), [a.session, a.run, b.session, b.run])
  return <Loaded of={loaded}>{(found) => <Compared found={found} />}</Loaded>
}

function Compared({ found }: { readonly found: Comparison }) {
  const { partsAt, hooks } = found
  return (
    <main class="page wide compare">
      <header class="page-head">
        <h1>
          {found.same
            ? 'The runs are the same'
            : partsAt === undefined
              ? 'The runs differ'
              : `The runs part at step ${partsAt.step + 1}`}
        </h1>
        {partsAt !== undefined && <p class="quiet">in {safe(partsAt.in)}</p>}
      </header>
      <div class="sides">
        {[found.a, found.b].map((side, i) => (
          <div key={i} class="side-head">
            <a href={link({ view: 'run', session: side.session, run: side.index, tab: 'decisions' })}>
              {safe(side.input.slice(0, 200) || side.session)}
            </a>
            <p class="quiet">
              <Status of={side.status} />{' '}
              {`${count(side.usage.steps, 'step')} · ${shortCount(side.usage.inputTokens + side.usage.outputTokens)} tokens · ${money(side.usage.costUsd)}`}
            </p>
          </div>
        ))}
      </div>
      {hooks !== undefined && (
        <p class="why">
          Other hooks: only the first had {safe(hooks.a.join(', ') || 'none')}, only the second had{' '}
          {safe(hooks.b.join(', ') || 'none')}.
        </p>
      )}
      {found.steps.map((step, i) => (
        <details key={i} open={step.differs.length > 0} class={step.differs.length > 0 ? 'differs' : ''}>
          <summary>
            Step {i + 1}{' '}
            {step.differs.length === 0 ? (
              <span class="quiet">same</span>
            ) : (
              step.differs.map((what) => (
                <span key={what} class="chip change">
                  {what}
                </span>
              ))
            )}
          </summary>
          <div class="sides">
            <Side side={step.a} />
            <Side side={step.b} />
          </div>
        </details>
      ))}
    </main>
  )
}

function Side({ side }: { readonly side: StoredStep | undefined }) {
  if (side === undefined) return <p class="quiet">The run has ended before.</p>
  return (
    <div>
      {side.text !== '' && <LongText text={side.text} />}
      {side.toolCalls.map(({ name, args, result }, i) => (
        <section class="entry" key={i}>
          <h3>
            {safe(name)}
            <Status of={result?.status ?? 'running'} />
            {result?.by !== undefined && <span class="quiet">by {safe(result.by)}</span>}
          </h3>
          <Arguments args={args} />
          <LongText text={textOf(result?.output)} />
        </section>
      ))}
      {side.outcome?.evaluations.map(({ decision, source, message }, i) => (
        <p class="quiet" key={i}>
          {safe(`${decision} by ${source}: ${message}`)}
        </p>
      ))}
      <Warnings texts={side.errors.map(({ message }) => message)} />
    </div>
  )
}
