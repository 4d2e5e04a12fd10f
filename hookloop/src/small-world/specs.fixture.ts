// The agents of the small world, as data: what their models answer, which tools and hooks they have.

/** A tool. `again`: after a crash, someone is asked whether it runs again. */
export type ToolKind = {
  readonly name: string
  readonly ask?: boolean
  readonly idempotent?: boolean
  readonly concurrent?: boolean
  readonly fails?: boolean
  readonly again?: boolean
  /** It ends some turns of the event loop after it began. */
  readonly slow?: boolean
  /** It has a time limit, and reaches it. */
  readonly hangs?: boolean
}

/** What a model does in one answer: it says a text, calls tools, or fails at the first attempt and then calls A. */
export type Turn = string | readonly string[]
export const FAIL = 'FAIL'

/** Limits, as in `guards`. */
export type SpecLimits = { readonly maxSteps?: number; readonly maxToolCalls?: number; readonly maxCost?: number }

export type Part = {
  readonly script: readonly Turn[]
  readonly tools: readonly ToolKind[]
  /** Names of `hooks.fixture.ts`. */
  readonly hooks: readonly string[]
  /** The subagent that the tool `sub` delegates to. */
  readonly child?: Child
}

/** `by`: whether the subagent is a spec, an agent of its own, or one of the capability `subagents`. */
export type Child = Part & { readonly by?: 'spec' | 'agent' | 'capability' }

/** `approval`: whether someone is asked after a crash about every tool. */
export type Spec = Part & { readonly name: string; readonly limits?: SpecLimits; readonly approval?: 'again' }

const kinds = {
  plain: {},
  ask: { ask: true },
  idem: { idempotent: true },
  idemAsk: { idempotent: true, ask: true },
  fails: { fails: true },
  again: { again: true },
  slow: { slow: true },
  hangs: { hangs: true },
} as const satisfies { readonly [kind: string]: Omit<ToolKind, 'name'> }
type Kind = keyof typeof kinds
const kindNames = Object.keys(kinds) as Kind[]

const toolOf = (name: string, kind: Kind, concurrent = false): ToolKind => ({ name, ...kinds[kind], concurrent })
const A = (kind: Kind, concurrent = false): ToolKind => toolOf('A', kind, concurrent)
const B = (kind: Kind, concurrent = false): ToolKind => toolOf('B', kind, concurrent)

const named = (name: string, part: Omit<Spec, 'name'>): Spec => ({ name, ...part })

/** No tool is called. */
function texts(): readonly Spec[] {
  const hooks = [
    'ask-input',
    'ask-step',
    'ask-model',
    'ask-stop',
    'once-more',
    'compact',
    'slow-hook',
    'slow-input',
    'hold',
    'window',
  ]
  return [
    named('text', { script: ['bye'], tools: [], hooks: ['trace', 'pause-trace'] }),
    named('text+ask-everything', {
      script: ['bye'],
      tools: [],
      hooks: ['trace', 'ask-input', 'ask-step', 'ask-model', 'ask-stop'],
    }),
    ...hooks.map((hook) => named(`text+${hook}`, { script: ['bye for now'], tools: [], hooks: ['trace', hook] })),
  ]
}

const aroundOneCall = [
  'block-A',
  'ask-A',
  'throw-A',
  'budget',
  'infer',
  'args',
  'output',
  'effect',
  'once-more',
  'ask-step',
  'ask-model',
  'compact',
  'say',
  'slow-step',
  'slow-guard',
  'slow-effect',
]

/** One call, of each kind of tool, with each hook. */
function oneCall(): readonly Spec[] {
  return kindNames.flatMap((kind) => {
    const part = { script: [['A'], 'bye'], tools: [A(kind)] }
    return [
      named(`A:${kind}`, { ...part, hooks: ['trace', 'pause-trace'] }),
      ...aroundOneCall.map((hook) => named(`A:${kind}+${hook}`, { ...part, hooks: ['trace', hook] })),
    ]
  })
}

/** A message of an earlier step that a compaction puts in another place. */
function pinned(): readonly Spec[] {
  return [named('A;A;A+pin', { script: [['A'], ['A'], ['A'], 'bye'], tools: [A('plain')], hooks: ['trace', 'pin'] })]
}

/** Two calls of one step, one after the other or together; and two steps. */
function twoCalls(): readonly Spec[] {
  const specs: Spec[] = []
  for (const a of ['plain', 'ask', 'idem', 'idemAsk', 'fails', 'again'] as const) {
    for (const b of ['plain', 'ask', 'idem', 'slow'] as const) {
      for (const together of [false, true]) {
        const part = { script: [['A', 'B'], 'bye'], tools: [A(a, together), B(b, together)] }
        const name = `A:${a},B:${b}${together ? ',together' : ''}`
        specs.push(named(name, { ...part, hooks: ['trace'] }))
        for (const hook of ['ask-A', 'ask-all', 'budget', 'args', 'infer', 'say'])
          specs.push(named(`${name}+${hook}`, { ...part, hooks: ['trace', hook] }))
      }
    }
    specs.push(
      named(`A:${a},B:ask+ask-second`, {
        script: [['A', 'B'], 'bye'],
        tools: [A(a), B('ask')],
        hooks: ['trace', 'ask-second'],
      }),
      named(`A:${a};B:ask`, { script: [['A'], ['B'], 'bye'], tools: [A(a), B('ask')], hooks: ['trace', 'args'] }),
    )
  }
  return specs
}

/** A model that fails. */
function failures(): readonly Spec[] {
  const part = { script: [FAIL, 'bye'], tools: [A('plain')] }
  const withRetry = ['retry', 'retry-later'].map((hook) => named(`FAIL+${hook}`, { ...part, hooks: ['trace', hook] }))
  return [named('FAIL', { ...part, hooks: ['trace'] }), ...withRetry]
}

const childOf = (kind: Kind, more: Partial<Child> = {}): Child => ({
  script: [['C'], 'child done'],
  tools: [toolOf('C', kind)],
  hooks: ['trace'],
  ...more,
})

/** Subagents, also next to other calls. */
function families(): readonly Spec[] {
  const specs: Spec[] = []
  for (const kind of ['plain', 'ask', 'idem', 'again'] as const) {
    for (const hook of ['output', 'ask-all', 'budget', 'child-once-more', 'infer']) {
      const [child, hooks] = [childOf(kind), ['trace', hook]]
      specs.push(
        named(`sub(${kind})+${hook}`, { script: [['sub'], 'bye'], tools: [], hooks, child }),
        named(`sub(${kind}),A+${hook}`, { script: [['sub', 'A'], 'bye'], tools: [A('plain', true)], hooks, child }),
        named(`A:ask,sub(${kind})+${hook}`, { script: [['A', 'sub'], 'bye'], tools: [A('ask')], hooks, child }),
      )
    }
    specs.push(
      named(`sub(${kind}),sub`, {
        script: [['sub', 'sub'], 'bye'],
        tools: [A('plain', true)],
        hooks: ['trace', 'output'],
        child: childOf(kind),
      }),
    )
    // The subagent has ended long before its parent knows it, and another call is stored meanwhile.
    specs.push(
      named(`sub(${kind}),A+late`, {
        script: [['sub', 'A'], 'bye'],
        tools: [A('plain', true)],
        hooks: ['trace', 'late'],
        child: childOf(kind),
      }),
    )
    for (const by of ['agent', 'capability'] as const)
      specs.push(
        named(`sub(${kind}) by ${by}`, {
          script: [['sub'], 'bye'],
          tools: [],
          hooks: ['trace'],
          child: childOf(kind, { by }),
        }),
      )
  }
  return specs
}

/** A subagent of a subagent. */
function grandchildren(): readonly Spec[] {
  const specs: Spec[] = []
  for (const kind of ['plain', 'ask', 'idem', 'again'] as const) {
    const child = childOf(kind, { script: [['sub'], 'child done'], tools: [], child: childOf(kind) })
    const asking = { ...child, script: [['C', 'sub'], 'child done'], tools: [toolOf('C', 'ask')] }
    for (const hook of ['output', 'ask-all', 'child-once-more']) {
      const hooks = ['trace', hook]
      specs.push(named(`sub(sub(${kind}))+${hook}`, { script: [['sub'], 'bye'], tools: [], hooks, child }))
    }
    specs.push(
      named(`sub(C:ask,sub(${kind}))`, { script: [['sub'], 'bye'], tools: [], hooks: ['trace'], child: asking }),
      named(`sub(sub(${kind})),sub,A`, {
        script: [['sub', 'sub', 'A'], 'bye'],
        tools: [A('plain', true)],
        hooks: ['trace'],
        child,
      }),
    )
  }
  return specs
}

/** Limits that end the run in the middle of its work. */
function limited(): readonly Spec[] {
  const limits: readonly SpecLimits[] = [{ maxSteps: 1 }, { maxToolCalls: 1 }, { maxCost: 1 }, { maxCost: 2 }]
  return limits.flatMap((limit) => {
    const [[name, max]] = Object.entries(limit) as [[string, number]]
    const pair = { script: [['A', 'B'], ['A'], 'bye'], limits: limit }
    return [
      named(`A,B;A/${name}=${max}`, { ...pair, tools: [A('plain'), B('plain')], hooks: ['trace'] }),
      named(`A,B;A,together/${name}=${max}`, { ...pair, tools: [A('plain', true), B('slow', true)], hooks: ['trace'] }),
      named(`A:ask,B;A/${name}=${max}`, { ...pair, tools: [A('ask'), B('plain')], hooks: ['trace'] }),
      named(`A,B;A/${name}=${max}+infer`, { ...pair, tools: [A('idem'), B('plain')], hooks: ['trace', 'infer'] }),
      named(`sub,A/${name}=${max}`, {
        script: [['sub', 'A'], 'bye'],
        tools: [A('plain')],
        hooks: ['trace'],
        child: childOf('plain'),
        limits: limit,
      }),
    ]
  })
}

/** Hooks that see everything, decide in shadow mode, or are around a call. */
function watched(): readonly Spec[] {
  const specs: Spec[] = []
  for (const hook of ['observe', 'shadow', 'around', 'around-model']) {
    const hooks = ['trace', hook]
    specs.push(named(`text+${hook}`, { script: ['bye'], tools: [], hooks }))
    for (const kind of kindNames)
      specs.push(named(`A:${kind}+${hook}`, { script: [['A'], 'bye'], tools: [A(kind)], hooks }))
    for (const a of ['plain', 'ask', 'again'] as const)
      for (const together of [false, true]) {
        const tools = [A(a, together), B('ask', together)]
        const name = `A:${a},B:ask${together ? ',together' : ''}+${hook}`
        specs.push(named(name, { script: [['A', 'B'], 'bye'], tools, hooks }))
      }
    for (const kind of ['plain', 'ask'] as const) {
      const child = childOf(kind)
      specs.push(named(`sub(${kind})+${hook}`, { script: [['sub'], 'bye'], tools: [], hooks, child }))
    }
    specs.push(named(`FAIL+retry+${hook}`, { script: [FAIL, 'bye'], tools: [A('plain')], hooks: [...hooks, 'retry'] }))
  }
  const late = ['trace', 'observe', 'late'] // the result is stored long before observers see it
  specs.push(named('A:ask+observe+late', { script: [['A'], 'bye'], tools: [A('ask')], hooks: late }))
  for (const kind of ['plain', 'fails'] as const) {
    const hooks = ['trace', 'around-again']
    specs.push(named(`A:${kind}+around-again`, { script: [['A'], 'bye'], tools: [A(kind)], hooks }))
  }
  return specs
}

/** After a crash, someone is asked whether a call runs again, whichever tool it is of. */
function askedAgain(): readonly Spec[] {
  const approval = 'again'
  const hooks = ['trace']
  return [
    ...(['plain', 'ask', 'idem', 'again', 'fails'] as const).map((kind) =>
      named(`A:${kind}/again`, { script: [['A'], 'bye'], tools: [A(kind)], hooks, approval }),
    ),
    ...[false, true].map((together) =>
      named(`A,B${together ? ',together' : ''}/again`, {
        script: [['A', 'B'], 'bye'],
        tools: [A('plain', together), B('plain', together)],
        hooks,
        approval,
      }),
    ),
    named('sub(plain)/again', { script: [['sub'], 'bye'], tools: [], hooks, child: childOf('plain'), approval }),
  ]
}

export const specs: readonly Spec[] = [
  ...texts(),
  ...oneCall(),
  ...pinned(),
  ...twoCalls(),
  ...failures(),
  ...families(),
  ...grandchildren(),
  ...limited(),
  ...watched(),
  ...askedAgain(),
]
