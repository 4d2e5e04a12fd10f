import { useSignal } from '@preact/signals'
import type { WhatIfReport } from '../../api.types.ts'
import type { RunInfo } from '../../run.types.ts'
import { call, toCallError } from './api.ts'
import { Changes } from './diff.tsx'
import { count } from './format.ts'
import { Warnings } from './load.tsx'
import { go } from './router.ts'
import type { RunModel } from './run-model.ts'
import { studio } from './studio.ts'
import { safe } from './text.tsx'

/** Judges the recorded run with other hooks. Nothing is called: the answers of models and tools are those of the record. */
export function WhatIf({ model, info }: { readonly model: RunModel; readonly info: RunInfo }) {
  const without = useSignal<ReadonlySet<string>>(new Set())
  const add = useSignal<ReadonlySet<string>>(new Set())
  const state = useSignal<{ readonly busy?: 'judging' | 'running'; readonly error?: string }>({})
  const files = studio.value?.hookFiles ?? []
  if (info.whatIf !== true)
    return (
      <div class="empty">
        <p>This run cannot be judged again.</p>
        <p class="quiet">{safe(info.whatIf)}</p>
      </div>
    )

  const request = () => ({ ...model.source.ref, without: [...without.value], add: [...add.value] })
  const judge = async (): Promise<void> => {
    if (without.value.size + add.value.size === 0) {
      model.whatIf.value = undefined
      state.value = {}
      return
    }
    const asked = request()
    state.value = { busy: 'judging' }
    const answer = await call('whatIf', asked).catch(toCallError)
    if (JSON.stringify(asked) !== JSON.stringify(request())) return // changed meanwhile
    state.value = answer instanceof Error ? { error: answer.message } : {}
    model.whatIf.value = answer instanceof Error ? undefined : answer
  }
  const toggle = (set: typeof without, name: string): void => {
    const next = new Set(set.value)
    if (!next.delete(name)) next.add(name)
    set.value = next
    void judge()
  }
  const runFork = async (): Promise<void> => {
    state.value = { busy: 'running' }
    try {
      const { session } = await call('runFork', request())
      go({ view: 'run', session, tab: 'decisions' })
    } catch (cause) {
      state.value = { error: toCallError(cause).message }
    }
  }
  const hooks = info.columns.filter(({ mode, bookkeeping }) => mode !== 'loop' && mode !== 'observe' && !bookkeeping)
  const report = model.whatIf.value

  return (
    <div class="what-if">
      <p class="quiet">Which decisions would change? No model is called and no tool runs.</p>
      <fieldset>
        <legend>Hooks in force</legend>
        {hooks.map((column) => (
          <label class="check" key={column.id}>
            <input
              type="checkbox"
              checked={!without.value.has(column.hook)}
              onChange={() => toggle(without, column.hook)}
            />
            {safe(column.hook)}
            <span class="quiet">{`${column.mode === 'guard' ? 'guard' : 'hook'}${column.shadow ? ', shadow' : ''} · decided ${column.decided}×`}</span>
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>Files to add</legend>
        {files.length === 0 && (
          <p class="quiet">
            Start with <code>hookloop studio --hooks mine.ts</code> to try a file of hooks.
          </p>
        )}
        {files.map((file) => (
          <label class="check" key={file}>
            <input type="checkbox" checked={add.value.has(file)} onChange={() => toggle(add, file)} />
            {safe(file)}
          </label>
        ))}
      </fieldset>
      <div role="status" aria-busy={state.value.busy !== undefined}>
        {state.value.busy === 'judging' && <p class="quiet">Judging …</p>}
        <Warnings texts={[state.value.error]} />
        {report !== undefined && <Report report={report} model={model} />}
      </div>
      {report !== undefined && studio.value?.agent !== undefined && (
        <button
          type="button"
          class="primary wide"
          disabled={state.value.busy !== undefined}
          onClick={() => void runFork()}
        >
          {state.value.busy === 'running' ? 'Starting …' : 'Run it live as a fork'}
        </button>
      )}
    </div>
  )
}

function Report({ report, model }: { readonly report: WhatIfReport; readonly model: RunModel }) {
  const { differences, divergesAt } = report
  return (
    <>
      <p class="big">
        {differences.length} of {count(report.events, 'decision')} would change
      </p>
      <p class="quiet">0 calls made, 0 tools run</p>
      {differences.map((difference, i) => {
        const { row, step, trigger, tool, was, would, divergence } = difference
        return (
          <section class="entry" key={i}>
            <h3>
              {row === null ? (
                `step ${step + 1}`
              ) : (
                <button type="button" class="plain" onClick={() => model.select({ row })}>
                  step {step + 1}
                </button>
              )}
              <span class="quiet">{safe(tool === undefined ? trigger : `${trigger} · ${tool}`)}</span>
            </h3>
            <div class="diff">
              <div class="del">{safe(was)}</div>
              <div class="add">{safe(would)}</div>
            </div>
            <Changes changes={difference.changes} />
            {divergence !== undefined && <p class="quiet">{safe(divergence)}</p>}
          </section>
        )
      })}
      {divergesAt !== undefined && (
        <p class="why">
          A live run leaves the record at step {divergesAt.step + 1}: {safe(divergesAt.why)}
          <span class="quiet"> Differences after it are less reliable.</span>
        </p>
      )}
      {report.unjudged.map(({ hook, why }) => (
        <p class="quiet" key={hook}>
          Not judged: {safe(`${hook}: ${why}`)}
        </p>
      ))}
    </>
  )
}
