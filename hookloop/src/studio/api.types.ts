import type { AgentDescription } from '../core/agent/agent-description.ts'
import type { ListedHooks } from '../hook-files/list-hooks.ts'
import type { StepDiff, RunDiff } from '../sessions/replay/diff-runs.ts'
import type { ReplayReport } from '../sessions/replay/replay.ts'
import type { SessionHead } from '../sessions/session/session-head.ts'
import type { ListedSession } from '../sessions/stores/store.ts'
import type { JsonObject } from '../values/json.ts'
import type { Change } from '../core/state/ledger.ts'
import type { StoredStep } from '../core/state/stored-run.ts'
import type {
  FindRequest,
  Question,
  RowDetail,
  RowsPage,
  RunChange,
  RunExplanation,
  RunInfo,
  RunRef,
  RunSummary,
  TimeReport,
} from './run.types.ts'

/**
 * The API between the studio and its page. Every call is `POST /api/<name>` with the header `Authorization: Bearer <token>` and a
 * JSON body of type `Api[name]['request']`. The answer is JSON of type `Api[name]['response']`, or an `ApiError` with a status
 * from 400 up. Nothing is sent by GET, so nothing of it is in a URL.
 */
export type Api = {
  /** What this studio can do, and where it is. The first call of the page, whose URL has the token: `#token=<token>`. */
  readonly studio: { readonly request: {}; readonly response: StudioInfo }
  readonly sessions: { readonly request: SessionsRequest; readonly response: SessionsPage }
  /** The runs of a session. */
  readonly session: { readonly request: { readonly session: string }; readonly response: SessionInfo }
  /** One run without its rows: how it ended, its columns, its limits. */
  readonly run: { readonly request: RunRef; readonly response: RunInfo }
  /** Rows of a run, from index `from` on. */
  readonly rows: {
    readonly request: RunRef & { readonly from: number; /** At most 1000. */ readonly count: number }
    readonly response: RowsPage
  }
  /** The next row that matches, for the keys "next decision" and "search". */
  readonly find: { readonly request: FindRequest; readonly response: { readonly row: number | null } }
  /** A row in full, with all that each hook did there. */
  readonly row: { readonly request: RunRef & { readonly row: number }; readonly response: RowDetail }
  /** Where the time and the money of a run went. */
  readonly time: { readonly request: RunRef; readonly response: TimeReport }
  /** Why the run ended as it did, as `explain` says it. */
  readonly explanation: { readonly request: RunRef; readonly response: RunExplanation }
  /** Judges a recorded run with other hooks. No model and no tool is called. */
  readonly whatIf: { readonly request: WhatIfRequest; readonly response: WhatIfReport }
  /** Runs the other hooks: forks the session before the given run and runs its input there. Only if `StudioInfo.agent` is set. */
  readonly runFork: { readonly request: WhatIfRequest; readonly response: { readonly session: string } }
  /** Questions of all sessions that wait for an answer, the oldest first. */
  readonly inbox: { readonly request: {}; readonly response: { readonly questions: readonly Question[] } }
  /**
   * Answers a question. 409 `HASH_MISMATCH` if the hash is not that of what is asked now, 409 `ANSWER_USED` if it was answered
   * before, 423 `SESSION_BUSY` if another process has the session locked: then nothing was written.
   */
  readonly answer: { readonly request: AnswerRequest; readonly response: { readonly answered: string } }
  readonly hooks: { readonly request: {}; readonly response: HooksReport }
  readonly compare: { readonly request: { readonly a: RunRef; readonly b: RunRef }; readonly response: Comparison }
  /** Copies a session up to a row, or to its end, into a new one. */
  readonly fork: {
    readonly request: { readonly session: string; /** `Row.forkAt` */ readonly at?: number; readonly message?: string }
    readonly response: { readonly session: string }
  }
  /** A session as JSON lines, or a run as one HTML file. Secrets are redacted. */
  readonly export: {
    readonly request: { readonly session: string; readonly run?: number; readonly as: 'jsonl' | 'html' }
    readonly response: { readonly name: string; readonly type: string; readonly text: string }
  }
}

/**
 * Streams: `POST /stream/<name>` with the same header and a JSON body. The answer is server-sent events with JSON, until the reader
 * leaves. A comment comes every 15 seconds, so that both sides notice a lost connection.
 */
export type Streams = {
  /** Changes of the list. The first line has the page that was asked for; a `changed` line has sessions to insert or replace by id. */
  readonly sessions: { readonly request: SessionsRequest; readonly line: SessionsChange }
  /** What happens in a run. The first lines bring it up to date from the row `from`. */
  readonly run: { readonly request: RunRef & { readonly from: number }; readonly line: RunChange }
  /** The inbox, whenever it changes. */
  readonly inbox: { readonly request: {}; readonly line: { readonly questions: readonly Question[] } }
}

/** The answer of a call that failed. */
export type ApiError = { readonly error: { readonly code: string; readonly message: string } }

export type StudioInfo = {
  readonly version: string
  /** Where the store is, without a password. */
  readonly store: string
  /** The project folder. */
  readonly dir: string
  /** The agent of `--agent`. Without it, runs cannot be forked live, and only runs of the command itself can be judged again. */
  readonly agent?: { readonly name: string; readonly file: string }
  /** Files with hooks that "what if" may add: those of `--hooks`. */
  readonly hookFiles: readonly string[]
  /** The name that is stored with answers. */
  readonly user: string
}

// Sessions

export type SessionsRequest = {
  /** Only sessions whose runs were started in this folder or below it. */
  readonly cwd?: string
  readonly agent?: string
  readonly status?: readonly SessionStatus[]
  readonly minCostUsd?: number
  /** In the id, the title, the agent, or what was said: messages, arguments and results of tools. Case is ignored. */
  readonly text?: string
  /** `next` of the page before. */
  readonly after?: SessionsPosition
  /** At most 200, default 50. */
  readonly count?: number
}
export type SessionsPosition = Pick<ListedSession, 'id' | 'updatedAt'>
export type SessionStatus = SessionHead['status']

/** `next` is missing on the last page. A page can end early, even without sessions: one reads a limited number of them. */
export type SessionsPage = {
  readonly sessions: readonly SessionSummary[]
  readonly next?: SessionsPosition | undefined
}
export type SessionSummary = Pick<SessionHead, 'title' | 'agent' | 'status' | 'steps' | 'tokens' | 'costUsd'> & {
  readonly id: string
  readonly updatedAt: number
  readonly cwd?: string | undefined
  /** A process is working on it now. */
  readonly live: boolean
  /** The number of questions that wait for an answer. */
  readonly pending: number
  /** Why it cannot be read. */
  readonly problem?: string | undefined
}
export type SessionsChange =
  | ({ readonly type: 'page' } & SessionsPage)
  | { readonly type: 'changed'; readonly sessions: readonly SessionSummary[]; readonly deleted: readonly string[] }

export type SessionInfo = {
  readonly summary: SessionSummary
  /** The session it was forked from. */
  readonly from?: string | undefined
  readonly runs: readonly RunSummary[]
}

// What if

export type WhatIfRequest = RunRef & {
  /** Names of hooks to leave out. */
  readonly without: readonly string[]
  /** Files of hooks to add, from `StudioInfo.hookFiles`. */
  readonly add: readonly string[]
}
export type WhatIfReport = Pick<ReplayReport, 'events' | 'unjudged'> & {
  readonly differences: readonly WhatIfDifference[]
  /** The first difference after which a live run would leave the record. Later differences are less reliable. */
  readonly divergesAt?: (WhatIfPlace & { readonly why: string }) | undefined
  /** Why the record was judged only up to a point, if it was. */
  readonly note?: string | undefined
}
export type WhatIfPlace = {
  readonly step: number
  readonly trigger: string
  readonly tool?: string | undefined
  /** The row, if there is one. */
  readonly row: number | null
}
export type WhatIfDifference = WhatIfPlace & {
  /** As text: `block by no-push: Agents never push.` */
  readonly was: string
  readonly would: string
  readonly changes: readonly Change[]
  /** Why a live run would leave the record here, if it would. */
  readonly divergence?: string | undefined
}

// Inbox

export type AnswerRequest = {
  readonly session: string
  readonly question: string
  /** The hash of what was shown. */
  readonly hash: string
  readonly answer:
    | { readonly type: 'allow' }
    | { readonly type: 'edit'; readonly args: JsonObject }
    | { readonly type: 'block'; readonly reason: string }
  /** Resume the session here after the last answer. Only if `StudioInfo.agent` is set. */
  readonly resume?: boolean
}

// Hooks

export type HooksReport = {
  /** Hooks in files, in the order in which they fire. */
  readonly files: ListedHooks['hooks']
  /** Hooks of the agent of `--agent`. */
  readonly agent: AgentDescription['hooks']
  /** Files and entries that cannot be read. */
  readonly problems: readonly string[]
  /** What each hook did in the latest runs. */
  readonly counts: readonly HookCounts[]
  /** The number of runs that were counted. */
  readonly runs: number
}
export type HookCounts = {
  readonly hook: string
  readonly definedAt?: string | undefined
  readonly shadow: boolean
  readonly blocked: number
  readonly asked: number
  readonly changed: number
  readonly stopped: number
  readonly failed: number
  /** At most 5 places where it decided something, the latest first. */
  readonly latest: readonly {
    readonly session: string
    readonly run: number
    readonly decision: string
    readonly text: string
  }[]
}
// Comparison

export type Comparison = Pick<RunDiff, 'same' | 'partsAt' | 'hooks'> & {
  readonly a: RunSummary
  readonly b: RunSummary
  readonly steps: readonly ComparedSteps[]
}
/** One step of both runs. `differs` is empty if they are the same, and `end` if only one run has ended it. */
export type ComparedSteps = {
  readonly differs: readonly (StepDiff['differs'][number] | 'end')[]
  readonly a?: StoredStep | undefined
  readonly b?: StoredStep | undefined
}

/**
 * The page as `bundlePage()` in `page/bundle-page.ts` makes it, with esbuild: one classic script and one style sheet, without
 * imports, source maps and `eval`. The studio puts them into `<body id="hookloop-studio">` of a page whose policy allows no other
 * script, style, image or connection than its own, and requires trusted types. The build writes them to `dist/studio/`.
 */
export type PageBundle = { readonly script: string; readonly style: string }
