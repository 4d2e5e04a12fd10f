import type { HookCounts, HooksReport } from '../../api.types.ts'
import { call } from './api.ts'
import { count, modeName } from './format.ts'
import { Loaded, Table, useLoaded, Warnings } from './load.tsx'
import { link } from './router.ts'
import { safe } from './text.tsx'

/** Which hooks are in force, from which file, whether it is trusted, and what they did. */
export function HooksView() {
  return (
    <Loaded of={useLoaded((signal) => call('hooks', {}, signal), [])}>{(report) => <Report report={report} />}</Loaded>
  )
}

function Report({ report }: { readonly report: HooksReport }) {
  const { files, agent, problems, counts, runs } = report
  const shadows = counts.filter(({ shadow }) => shadow)
  return (
    <main class="page wide">
      <header class="page-head">
        <h1>Hooks</h1>
        <p class="quiet">
          {`${count(files.length + agent.length, 'hook')} in force · counted over the latest ${count(runs, 'run')}`}
        </p>
      </header>
      <Warnings texts={problems} />
      <section>
        <h2>From files, in the order in which they fire</h2>
        {files.length === 0 ? (
          <p class="quiet">
            No hook file applies to this folder. Hooks in <code>.hookloop/hooks.json</code> and{' '}
            <code>.claude/settings.json</code> appear here.
          </p>
        ) : (
          <Table list heads={['trust', 'hook', 'fires at', 'runs', 'file']}>
            {files.map((hook, i) => (
              <FileHook key={i} hook={hook} />
            ))}
          </Table>
        )}
      </section>
      {agent.length > 0 && (
        <section>
          <h2>Of the agent</h2>
          <Table list heads={['hook', 'mode', 'fires at']}>
            {agent.map(({ name, mode, triggers, shadow }, i) => (
              <tr key={i}>
                <td class="mono">{safe(name)}</td>
                <td>
                  {modeName(mode)}
                  {shadow === true && <span class="chip plain shadow">shadow</span>}
                </td>
                <td>{triggers.join(', ')}</td>
              </tr>
            ))}
          </Table>
        </section>
      )}
      <section>
        <h2>What they did</h2>
        {shadows.map((shadow) => (
          <ShadowLine key={shadow.hook} counts={shadow} />
        ))}
        <Counts counts={counts.filter(({ shadow }) => !shadow)} />
      </section>
    </main>
  )
}

const TRUST = { trusted: 'good', own: 'good', changed: 'bad', untrusted: 'ask' } as const

function FileHook({ hook }: { readonly hook: HooksReport['files'][number] }) {
  return (
    <tr>
      <td>
        <span class={`chip ${TRUST[hook.trust]}`}>{hook.trust}</span>
      </td>
      <td class="mono">{safe(hook.name)}</td>
      <td>
        {hook.trigger ?? 'never'} <span class="quiet">{hook.mode}</span>
        {hook.matcher !== undefined && <code>{safe(hook.matcher)}</code>}
      </td>
      <td class="main mono">
        {safe(hook.runs)}
        {hook.problem !== undefined && <span class="warning sub">{safe(hook.problem)}</span>}
      </td>
      <td class="mono">{safe(hook.source)}</td>
    </tr>
  )
}

/** `no-ls would have blocked 14, changed 2.` */
function ShadowLine({ counts }: { readonly counts: HookCounts }) {
  const { hook, blocked, asked, changed, stopped } = counts
  const done = Object.entries({ blocked, asked, changed, stopped }).filter(([, number]) => number > 0)
  const what = done.map(([word, number]) => `${word === 'asked' ? 'asked about' : word} ${count(number)}`).join(', ')
  return (
    <p class="shadow-line">
      <b class="mono">{safe(hook)}</b> {what === '' ? 'would have changed nothing' : `would have ${what}`}
      <span class="chip plain shadow">shadow</span>
    </p>
  )
}

const KINDS = ['blocked', 'asked', 'changed', 'stopped', 'failed'] as const

function Counts({ counts }: { readonly counts: readonly HookCounts[] }) {
  if (counts.length === 0) return <p class="quiet">No run has been recorded yet.</p>
  return (
    <Table list heads={['hook', ...KINDS.map((name) => `#${name}`), 'latest']}>
      {counts.map((each) => (
        <tr key={each.hook}>
          <td class="mono">
            {safe(each.hook)}
            {each.definedAt !== undefined && <span class="quiet sub">{safe(each.definedAt)}</span>}
          </td>
          {KINDS.map((name) => (
            <td class={`number${each[name] === 0 ? ' zero' : ''}`} data-unit={name} key={name}>
              {count(each[name])}
            </td>
          ))}
          <td class="main">
            {each.latest.slice(0, 2).map(({ session, run, decision, text }, i) => (
              <a key={i} class="sub" href={link({ view: 'run', session, run, tab: 'decisions' })}>
                {safe(`${decision}: ${text}`)}
              </a>
            ))}
          </td>
        </tr>
      ))}
    </Table>
  )
}
