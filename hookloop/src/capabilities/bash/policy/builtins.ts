/** Whether a builtin evaluates its arguments, or changes the meaning of later commands, in every form. */
export function isBuiltin(name: string): boolean {
  return builtins.has(name)
}

const builtins: ReadonlySet<string> = new Set(
  `eval source . trap let declare typeset local readonly mapfile readarray enable bind alias unalias hash complete compgen compopt
  exec history fc getopts builtin disown suspend logout shift caller coproc`.split(/\s+/),
)
