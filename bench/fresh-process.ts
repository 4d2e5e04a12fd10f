// The process behind `inFreshProcess`: calls one exported function and prints its result as JSON.
const [module, name, args] = process.argv.slice(2)
const exported = (await import(module!)) as { readonly [name: string]: (...args: readonly unknown[]) => unknown }
console.log(JSON.stringify(await exported[name!]!(...(JSON.parse(args!) as readonly unknown[]))))
