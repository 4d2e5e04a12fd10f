import { colorsFor } from '../terminal/colors.ts'
import { oneLine } from '../terminal/printable.ts'
import { Spinner } from '../terminal/spinner.ts'
import type { Place } from '../cli-context.ts'

export type DoctorProgress = {
  /** A canary has landed. */
  readonly step: (patient: { readonly name: string }) => void
  readonly stop: () => void
}

/** A line that says how far it is, where somebody watches. */
export function doctorProgress({ err, env }: Pick<Place, 'err' | 'env'>, flights: number): DoctorProgress {
  if (err.isTTY !== true || flights === 0) return { step: () => undefined, stop: () => undefined }
  let landed = 0
  let name = ''
  const spinner = new Spinner(err, {
    line: () => `${landed} of ${flights} canaries${name === '' ? '' : ` · ${oneLine(name, 40)}`}`,
    paint: colorsFor(err, env).dim,
    mayDraw: () => true,
  })
  spinner.start()
  return {
    step: (patient) => {
      landed++
      name = patient.name
    },
    stop: () => spinner.stop(),
  }
}
