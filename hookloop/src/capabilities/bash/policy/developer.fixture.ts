import { commandLists } from './command-lists.fixture.ts'
import type { CommandRules } from './rules.ts'

/** What a developer lets an agent do in a project without asking. */
export const developerRules: CommandRules = {
  allow: [
    ...`ls cat echo printf grep rg find fd sort uniq head tail wc cut tr diff sed awk jq pwd date which type file stat du df tree basename dirname realpath
    test [ true false cd ps env sleep wait exit tee mkdir cp mv touch tar column sha256sum uname whoami command curl`.split(
      /\s+/,
    ),
    ...'status log diff show branch tag blame grep add commit stash checkout switch restore fetch pull remote rev-parse ls-files reflog merge rebase describe'
      .split(' ')
      .map((word) => `git ${word}`),
    ...'npm test,npm run *,npm ls,npm ci,npm install,npm outdated,npm view,npm audit,npm start,npm --version,npx tsc,npx eslint,npx vitest,npx prettier'.split(
      ',',
    ),
    ...'pnpm test,pnpm run *,pnpm install,pnpm build,pnpm lint,yarn test,yarn install,yarn build,yarn lint'.split(','),
    ...'node --test,node --version,node scripts/build.js,python3 -m pytest,python3 --version,python3 manage.py test,pytest,pip list,pip install,ruff,mypy'.split(
      ',',
    ),
    ...'cargo build,cargo test,cargo check,cargo clippy,cargo run,cargo fmt,go test,go build,go vet,go mod tidy,go version,make,tsc,eslint,prettier,jest,vitest'.split(
      ',',
    ),
    ...'docker ps,docker images,docker logs,docker build,docker compose,kubectl get,kubectl logs,kubectl describe,gh pr list,gh pr view,./gradlew test'.split(
      ',',
    ),
    ...'docker compose up,docker compose down,xargs grep,xargs wc,gcc,cmake --build'.split(','),
  ],
  block: ['rm -rf', 'git push', 'sudo'],
}

/** The same with the other programs of the lists. */
export const listRules: CommandRules = {
  allow: [
    ...developerRules.allow!,
    ...`printenv,seq,xargs,yq,bun test,bun run *,bun install,python -m pytest,python3 -m json.tool,gofmt,mvn,gradle,gh run list,gh issue view
    gh run view,gh pr checks,gh issue list,gh pr diff,terraform plan,terraform fmt,terraform validate,comm,paste,join,nl,fold,fmt,expand
    unexpand,rev,tac,shuf,split,od,xxd,hexdump,strings,base64,md5sum,sha1sum,cksum,cmp,numfmt,bc,expr,factor,yes,zcat,gunzip,gzip -l,zgrep,unzip
    zipinfo,lsof,ss,netstat,iconv,dos2unix,cal,envsubst,node -p,kill,id,hostname,readlink,git worktree,git shortlog,git merge-base,git cherry
    git show-ref,git cat-file,git ls-tree,git ls-remote,git rev-list,git name-rev,git symbolic-ref,git for-each-ref,git config,git help
    git --version,npm explain,npm why,npm pkg get,npm config get,npm root,npm prefix,npm info,npm search,npm pack,npm dedupe,npm query
    npm doctor,npm ping,npm whoami,npm fund,npm run,npm t,npm i,npm -v,pnpm i,pnpm list,pnpm why,pnpm outdated,pnpm exec tsc,pnpm tsc
    pnpm vitest,pnpm -r *,pnpm --filter,pnpm *,yarn,yarn *,npx jest,npx playwright test,npx vitest,docker inspect,docker stats,docker version
    docker info,docker network ls,docker volume ls,docker system df,docker history,docker top,docker port,docker diff,docker compose *
    docker exec,docker-compose,docker compose exec,kubectl top,kubectl version,kubectl config,kubectl cluster-info,kubectl api-resources
    kubectl explain,kubectl rollout,kubectl auth,kubectl diff,kubectl,git cherry-pick,npm uninstall,pnpm add,yarn add,yarn workspace
    node --check,python3 -m unittest,python3 -m pip list,pip show,cargo tree,go tool cover,go list,go env,bun add,cargo add,cargo update
    cargo doc,cargo bench,go run,go get,pip freeze,black,git reset,git revert,git mv,git rm,npm version,npm update,ruff check,ruff format,rustc
    poetry run pytest,uv run pytest,helm list,deno lint,nproc,pip --version,go mod why,go doc,docker network inspect,pnpm exec eslint,git apply,git clean,tofu plan,helm template,helm status,npm link`
      .split(/,|\n/)
      .map((rule) => rule.trim()),
  ],
  block: developerRules.block!,
}

/** Lists of everyday commands by title. The last one has those that need approval on purpose. */
export const developerLists: ReadonlyMap<string, readonly string[]> = new Map(
  commandLists('developer-commands.txt').map(({ title, commands }) => [title, commands]),
)

export const ON_PURPOSE = 'asked on purpose'

/** Everyday commands of developers, as models write them. */
export const developerCommands: readonly string[] = developerLists.get('commands of developers')!
