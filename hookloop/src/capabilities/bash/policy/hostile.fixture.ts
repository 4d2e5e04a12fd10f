import { commandLists } from './command-lists.fixture.ts'
import type { CommandRules } from './rules.ts'

/** Rules of a user who allows a lot. None of the hostile commands is covered by them. */
export const generousRules: CommandRules = {
  allow: [
    '*',
    ...`git npm pnpm yarn node python3 cargo go make docker kubectl curl gcc tsc eslint prettier jest pytest sed awk find tar sort xargs env jq
    git log,git diff,git show,git status,git branch,git tag,git remote,git fetch,git pull,git push,git clone,git commit,git add,git stash,git config,git grep
    git archive,git submodule,git ls-remote,git checkout,git rebase,git merge,git blame
    npm test,npm run *,npm install,npm ci,npm ls,pnpm test,pnpm run *,yarn test,yarn run *,node --test,python3 -m pytest,cargo build,cargo test,cargo run
    go test,go build,go vet,docker ps,docker build,docker compose up,kubectl get,kubectl logs,xargs grep,npx tsc,cp,mv,mkdir,tee,cd,pip install`
      .split(/[\n,]\s*/)
      .flatMap((line) => (line.startsWith('git npm') ? line.split(' ') : [line.trim()])),
  ],
}

/**
 * Commands that run a program, write a file, read a key or change a setting by a word that looks ordinary: one per line, as
 * `hookloop policy bash` reads them.
 */
export const hostile: readonly string[] = commandLists('hostile-commands.txt').flatMap(({ commands }) => commands)
