import { guard, hook, shadow, type Hook } from './hook.ts'

// What the compiler must say about shadows.

const no = guard('beforeToolUse', (ctx) => ctx.block('No.'))

shadow(no) satisfies Hook<'beforeToolUse'>
shadow(no, { name: 'next' }) satisfies Hook<'beforeToolUse'>

// @ts-expect-error an around hook makes the call it wraps
shadow(hook('aroundInference', (_ctx, next) => next()))
// @ts-expect-error a shadow is made of a hook
shadow((ctx: unknown) => ctx)
