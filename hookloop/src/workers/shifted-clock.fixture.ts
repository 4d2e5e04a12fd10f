// Loaded with --import: the clock of this process is CLOCK_MS ahead, or behind if it is negative.
const Actual = Date
const shiftMs = Number(process.env['CLOCK_MS'] ?? 0)

globalThis.Date = new Proxy(Actual, {
  construct: (target, args: unknown[]) =>
    Reflect.construct(target, args.length === 0 ? [Actual.now() + shiftMs] : args) as Date,
  get: (target, name) => (name === 'now' ? () => Actual.now() + shiftMs : (Reflect.get(target, name) as unknown)),
})
