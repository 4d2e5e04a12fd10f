import { toJson } from '../values/json.ts'
import { redactor, secretName, secretPatterns } from '../values/secrets.ts'
import type { PageBundle } from './api.types.ts'
import { pageInOneFile } from './page-html.ts'
import { rowDetail } from './row-detail.ts'
import type { EmbeddedRun } from './run.types.ts'
import { questionsIn, runExplanation, runInfo, type RunView } from './runs.ts'
import { timeReport } from './time.ts'

type PageOptions = {
  readonly page: PageBundle
  readonly live: boolean
  /** Texts and patterns to redact, in addition to the built-in rules. */
  readonly redact: readonly (RegExp | string)[]
}

/** A run as one HTML file to share: it loads nothing, and what looks like a secret is redacted. */
export function runAsPage(view: RunView, { page, live, redact }: PageOptions): string {
  const { matrix, run } = view
  const now = Date.now()
  const embedded: EmbeddedRun = {
    run: runInfo(view, { live, now, whatIf: 'This is a copy of the run.' }),
    rows: matrix.rows.map(({ row }) => row),
    details: matrix.rows.map((row) => rowDetail(row, questionsIn(run))),
    time: timeReport(run, matrix, now),
    explanation: runExplanation(run),
  }
  const clean = redactor([...secretPatterns, ...redact], (name) => secretName.test(name))
  const data = clean(toJson(embedded)) as unknown as EmbeddedRun
  return pageInOneFile(page, `${data.run.session}: ${data.run.input}`, toJson(data))
}
