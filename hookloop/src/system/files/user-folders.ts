import { homedir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** The home folder of the user. With an empty `HOME`, `homedir` returns an empty path, which would be the current folder. */
export function homeFolder(): string {
  return homedir() || userInfo().homedir
}

/** The folder with the settings of the user for Hookloop. By the XDG rules, an empty or relative path is ignored. */
export function configFolder(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['XDG_CONFIG_HOME'] ?? ''
  return join(isAbsolute(named) ? named : join(homeFolder(), '.config'), 'hookloop')
}
