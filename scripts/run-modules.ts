// Imports the modules that its arguments name, one after the other, and prints what each of them wrote as a JSON list.
// Tests run many small programs with it: one process instead of one for each.
import { pathToFileURL } from 'node:url'

/** What a module wrote and the exit code it set while it was imported. `stderr` ends with the error if it threw. */
export type ModuleOutput = { readonly exitCode: number; readonly stdout: string; readonly stderr: string }

const [node = '', , ...files] = process.argv
const streams = ['stdout', 'stderr'] as const
const print = process.stdout.write.bind(process.stdout)
const outputs: ModuleOutput[] = []

for (const file of files) {
  const written = { stdout: '', stderr: '' }
  for (const stream of streams) {
    process[stream].write = (chunk: string | Uint8Array) => {
      written[stream] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
      return true
    }
  }
  process.argv = [node, file]
  try {
    await import(pathToFileURL(file).href)
  } catch (error) {
    written.stderr += error instanceof Error ? error.stack : String(error)
  }
  outputs.push({ exitCode: Number(process.exitCode ?? 0), ...written })
  process.exitCode = 0
}

print(`${JSON.stringify(outputs)}\n`, () => process.exit())
