import { commandLists } from './command-lists.fixture.ts'
import type { CommandRules } from './rules.ts'

/** Typical rules of a user who wants to approve changes. */
export const everydayRules: CommandRules = {
  allow: [
    ...'ls cat echo printf grep egrep rg find fd sort uniq head tail wc cut tr diff cmp comm sed awk pwd'.split(' '),
    ...'true false date whoami id uname hostname which type file stat du df tree basename dirname'.split(' '),
    ...'realpath readlink seq sleep wait jq tac nl rev test [ cd ps env man tar column xxd base64 sha256sum'.split(' '),
    'command -v',
    ...'log status diff show branch blame ls-files rev-parse grep add commit'.split(' ').map((word) => `git ${word}`),
    'git stash list',
    'git remote',
    'git config',
    'git tag',
    'npm test',
    'npm run *',
    'npm ls',
    'node --version',
    'node --test',
    'python3 --version',
    'python3 -m pytest',
    'tsc',
    'cargo build',
    'cargo test',
    'go test',
    'go build',
    'make',
    'docker ps',
    './gradlew test',
    'xargs grep',
  ],
  block: ['rm', 'curl', 'touch', 'sudo', 'git push'],
}

/** Everyday commands, which must not be stopped because of a word or a character in them. */
export const everyday: readonly string[] = commandLists('everyday-commands.txt').flatMap(({ commands }) => commands)
