import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { engines, TestFleet, type EngineName, type TestWorker } from '../../hookloop/src/workers/fleet.fixture.ts'
import { round, spread, type Figures, type Measurement } from '../measurement.ts'

// Workers as processes on this machine, with a Postgres server that does not wait for the disk, and runs of five steps: four calls of
// a tool that waits for 20 ms, and an answer. A worker makes at most one call at a time, so that waiting limits it and not the
// processors, which workers, engine, database and client share here. It has eight runs, so that one of them nearly always has a
// call to make, also if Restate gives another worker more of them. CPU time is of processes; the client does not count.

const COUNTS = [1, 2, 4]
const CALLS_AT_ONCE = 1
const STEPS = 5
const RUNS_PER_WORKER = 100
const OPEN_PER_WORKER = 8
const ANSWERS = 40

export const measurement: Measurement = {
  about: 'sessions on 1, 2 and 4 workers, and how fast an answer resumes one',
  rows: {
    'workers.*.oneStepsPerSec': { label: 'steps/s with one worker, tools that wait, *' },
    'workers.*.twoTimesOne': { label: 'steps/s of 2 workers beside 1, *' },
    'workers.*.fourTimesTwo': { label: 'steps/s of 4 workers beside 2, *' },
    'workers.*.answerMs': { label: 'ms from an answer to the resumed run, median, *', goal: 200 },
    'workers.*.workerCpuMsPerStep': { label: 'ms of CPU per step, worker, *' },
    'workers.*.databaseCpuMsPerStep': { label: 'ms of CPU per step, database, *' },
    'workers.*.databaseBytesPerStep': { label: 'bytes in the database per step, *' },
  },
  async measure() {
    const workers: { [engine: string]: Figures } = {}
    for (const engine of engines) workers[engine] = await measureEngine(engine)
    return { workers }
  },
}

async function measureEngine(engine: EngineName): Promise<Figures> {
  const fleet = await TestFleet.start(engine)
  const database = new pg.Client({ connectionString: fleet.database.connectionString })
  await database.connect()
  try {
    const rates: number[] = []
    let cost: Figures = {}
    for (const count of COUNTS) {
      const workers: TestWorker[] = []
      while (workers.length < count)
        workers.push(
          await fleet.worker({
            TOOL_MS: '20',
            CALLS_AT_ONCE: String(CALLS_AT_ONCE),
            MAX_RUNS: String(OPEN_PER_WORKER),
          }),
        )
      await runAll(fleet, `warm-${count}`, { runs: (RUNS_PER_WORKER / 2) * count, open: OPEN_PER_WORKER * count })
      const runs = RUNS_PER_WORKER * count
      const before = await usage(fleet, workers, database)
      const started = performance.now()
      await runAll(fleet, `run-${count}`, { runs, open: OPEN_PER_WORKER * count })
      rates.push((runs * STEPS) / ((performance.now() - started) / 1_000))
      const now = await usage(fleet, workers, database)
      if (count === COUNTS.at(-1)) cost = costOf(before, now, runs)
      if (count !== COUNTS.at(-1)) await fleet.killAll()
    }
    const answers = spread(await measureAnswers(fleet))
    const [one, two, four] = rates as [number, number, number]
    return {
      oneStepsPerSec: Math.round(one),
      twoStepsPerSec: Math.round(two),
      fourStepsPerSec: Math.round(four),
      twoTimesOne: round(two / one),
      fourTimesTwo: round(four / two),
      answerMs: round(answers.median),
      fastAnswerMs: round(answers.fast),
      ...cost,
    }
  } finally {
    await database.end()
    await fleet.stop()
  }
}

async function runAll(fleet: TestFleet, name: string, { runs, open }: { runs: number; open: number }): Promise<void> {
  const ids = Array.from({ length: runs }, (_, i) => `${name}-${i}`).values()
  const drive = async (): Promise<void> => {
    for (const id of ids) await (await fleet.sessions.send(id, id, { agent: 'worker' })).result()
  }
  await Promise.all(Array.from({ length: open }, drive))
}

/** From the call of `answer` to the event that the run has resumed, in another process than the worker. */
async function measureAnswers(fleet: TestFleet): Promise<readonly number[]> {
  const times: number[] = []
  for (let i = 0; i < ANSWERS; i++) {
    const id = `asks-${i}`
    const sent = await fleet.sessions.send(id, id, { agent: 'worker', metadata: { asks: true } })
    const { pending } = await sent.result()
    const events = fleet.sessions.watch(id, { after: Infinity })
    const resumed = (async () => {
      for await (const { type } of events) if (type === 'resumed') return
    })()
    const started = performance.now()
    await fleet.sessions.answer(id, { approval: pending[0]!.id, answer: 'allow' })
    await resumed
    times.push(performance.now() - started)
  }
  return times
}

type Usage = {
  readonly worker: number
  readonly database: number
  readonly engine: number
  readonly sessionBytes: number
  readonly queueBytes: number
}

async function usage(fleet: TestFleet, workers: readonly TestWorker[], database: pg.Client): Promise<Usage> {
  const { rows } = await database.query<{ pid: number; sessions: string; queue: string }>(
    `SELECT pg_backend_pid() AS pid, ${sizeOf('hookloop')} AS sessions, ${sizeOf('hookloop_turns')} AS queue`,
  )
  const { pid, sessions, queue } = rows[0]!
  const processes = allProcesses()
  const postmaster = processes.get(pid)!.parent
  const ofDatabase = [...processes.values()].filter((each) => each.parent === postmaster)
  return {
    worker: sum(workers.map((worker) => processes.get(worker.pid!)!.cpuMs)),
    database: sum(ofDatabase.map(({ cpuMs }) => cpuMs)) + processes.get(postmaster)!.endedMs,
    engine: fleet.restate === undefined ? 0 : processes.get(fleet.restate.pid)!.cpuMs,
    sessionBytes: Number(sessions),
    queueBytes: Number(queue),
  }
}

function costOf(before: Usage, now: Usage, runs: number): Figures {
  const per = (name: keyof Usage, count: number): number => round((now[name] - before[name]) / count)
  const steps = runs * STEPS
  return {
    workerCpuMsPerStep: per('worker', steps),
    databaseCpuMsPerStep: per('database', steps),
    engineCpuMsPerStep: per('engine', steps),
    databaseBytesPerStep: Math.round(per('sessionBytes', steps)),
    databaseBytesPerSession: Math.round(per('sessionBytes', runs)),
    queueBytesPerTurn: Math.round(per('queueBytes', runs)),
  }
}

function sizeOf(schema: string): string {
  return `(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = '${schema}' AND c.relkind IN ('r', 'p'))`
}

/** Linux only. CPU time is counted in hundredths of a second. */
function allProcesses(): ReadonlyMap<
  number,
  { readonly parent: number; readonly cpuMs: number; readonly endedMs: number }
> {
  const found = new Map<number, { parent: number; cpuMs: number; endedMs: number }>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number)
      const [user, system, endedUser, endedSystem] = fields.slice(11, 15) as [number, number, number, number]
      found.set(Number(name), {
        parent: fields[1]!,
        cpuMs: 10 * (user + system),
        endedMs: 10 * (endedUser + endedSystem),
      })
    } catch {
      // it has ended
    }
  }
  return found
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
