import type { CliContext } from '../cli-context.ts'
import { colorsFor } from '../terminal/colors.ts'
import { oneLine } from '../terminal/printable.ts'
import { Spinner } from '../terminal/spinner.ts'

type DoctorProgress = {
  /** A probe run of this hook has ended. */
  readonly step: (hook: { readonly name: string }) => void
  readonly stop: () => void
}

/** Shows on a terminal how many probe runs have ended. */
export function doctorProgress({ err, env }: Pick<CliContext, 'err' | 'env'>, total: number): DoctorProgress {
  if (err.isTTY !== true || total === 0) return { step: () => undefined, stop: () => undefined }
  let done = 0
  let last = ''
  const spinner = new Spinner(err, {
    line: () => `${done} of ${total} probe runs${last === '' ? '' : ` · ${oneLine(last, 40)}`}`,
    paint: colorsFor(err, env).dim,
    mayDraw: () => true,
  })
  spinner.start()
  return {
    step: ({ name }) => {
      done++
      last = name
    },
    stop: () => spinner.stop(),
  }
}
