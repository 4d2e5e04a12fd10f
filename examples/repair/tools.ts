import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isAbsolute, join, posix, relative, sep } from 'node:path'
import { tool } from 'hookloop'
import * as z from 'zod'
import { runProgram } from './run-program.ts'

export type RepairTools = ReturnType<typeof repairTools>

/** Real tools for one folder. The schema normalizes paths, so guards and tools see the same path. */
export function repairTools(folder: string) {
  return {
    listFiles: tool({
      name: 'list_files',
      description: 'Lists every file of the program.',
      input: z.object({}),
      concurrent: true,
      execute: () => listFiles(folder),
    }),
    readFile: tool({
      name: 'read_file',
      description: 'Reads a file.',
      input: z.object({ path }),
      concurrent: true,
      execute: ({ path: file }) => readFile(join(folder, file), 'utf8'),
    }),
    editFile: tool({
      name: 'edit_file',
      description: 'Replaces a text that occurs exactly once in a file.',
      input: z.object({ path, find: z.string().min(1), replace: z.string() }),
      execute: (edit) => editFile(join(folder, edit.path), edit),
    }),
    deleteFile: tool({
      name: 'delete_file',
      description: 'Deletes a file.',
      input: z.object({ path }),
      async execute({ path: file }) {
        await rm(join(folder, file))
        return 'deleted'
      },
    }),
    run: tool({
      name: 'run',
      description: 'Runs a program, without a shell.',
      input: z.object({ command: z.string(), args: z.array(z.string()).default([]) }),
      timeoutMs: 10_000,
      execute: ({ command, args }, { signal }) => runProgram(command, args, { folder, signal }),
    }),
    runTests: tool({
      name: 'run_tests',
      description: 'Runs the tests of the program.',
      input: z.object({}),
      timeoutMs: 30_000,
      execute: (_args, { signal }) => runTests(folder, signal),
    }),
  }
}

const path = z
  .string()
  .transform((given) => posix.normalize(given))
  .refine((plain) => !isAbsolute(plain) && plain.split('/')[0] !== '..', 'is outside the folder')

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((file) => relative(folder, join(file.parentPath, file.name)).replaceAll(sep, '/')).toSorted()
}

async function editFile(file: string, edit: { readonly find: string; readonly replace: string }): Promise<string> {
  const parts = (await readFile(file, 'utf8')).split(edit.find)
  if (parts.length !== 2) throw new Error(`"find" must occur exactly once; it occurs ${parts.length - 1} times.`)
  await writeFile(file, parts.join(edit.replace))
  return 'edited'
}

export type TestReport = {
  readonly exitCode: number
  readonly passed: number
  readonly failed: number
  readonly failing: readonly string[]
}

/** Runs `node --test` in the folder, for the agent and for the check at the end of the demo. */
export async function runTests(folder: string, signal?: AbortSignal): Promise<TestReport> {
  const { exitCode, output } = await runProgram('node', ['--test', '--test-reporter=tap'], { folder, signal })
  const count = (word: string): number => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
  const failing = [...output.matchAll(/^\s*not ok \d+ - (.*)$/gm)].map(([, title]) => title!)
  return { exitCode, passed: count('pass'), failed: count('fail'), failing }
}
