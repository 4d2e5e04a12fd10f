import { readFileSync } from 'node:fs'
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
  deny: ['rm -rf', 'git push', 'sudo'],
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
  deny: developerRules.deny!,
}

/** Lists of everyday commands by title. The last one has those that need approval on purpose. */
export const developerLists: ReadonlyMap<string, readonly string[]> = new Map(
  readFileSync(new URL('developer-commands.txt', import.meta.url), 'utf8')
    .split(/^# /m)
    .slice(1)
    .map((list) => {
      const [title = '', ...lines] = list.trim().split('\n')
      return [title, lines.map((line) => (line.startsWith('"') ? (JSON.parse(line) as string) : line))]
    }),
)

export const ON_PURPOSE = 'asked on purpose'

/** Everyday commands of developers, as models write them. */
export const developerCommands: readonly string[] = String.raw`
npm test > build.log
mkdir -p out && echo x > out/a.txt
ls
ls -la
ls -la src/
ls src/*.ts
ls *.md
ls -lt | head -5
ls node_modules | wc -l
pwd && ls
cat package.json
cat src/*.css | wc -c
cat ./*.json | head -50
cat README.md | head -n 40
head -50 src/index.ts
tail -n 100 app.log
tail -f app.log | grep ERROR
wc -l src/*.ts
find . -name "*.ts" -not -path "*/node_modules/*"
find . -type f -name '*.test.ts' | head -20
find src -name '*.tsx' | xargs grep -l useState
find . -name '*.py' -print0 | xargs -0 grep -n deprecated
find . -maxdepth 2 -type d
find . -type f -size +1M -exec ls -lh {} \;
grep -rn "deprecated" src
grep -rn "foo" --include=*.ts src
grep -rn --include="*.py" "def main" .
grep -E "error|warn" app.log | tail -20
grep -c test src/*.test.ts
grep -v '^#' config.ini
grep -n "export" src/index.ts 2>/dev/null || echo none
rg -n "createAgent" src
rg "deprecated|removed" -g '*.ts'
sed -n '10,40p' src/index.ts
awk '{print $1}' access.log | sort | uniq -c | sort -rn | head
jq . package.json
jq -r '.scripts | keys[]' package.json
jq '.dependencies | length' package.json
jq -r '.version' package.json 2>/dev/null
cat data.json | jq '.items[] | select(.active) | .name'
sort names.txt | uniq -c
cut -d, -f1,3 data.csv
diff -u old.txt new.txt
du -sh *
du -sh node_modules
df -h
tree -L 2
stat -c '%s %n' src/*
which node npm python3
type git
date +%Y-%m-%d
date "+%H:%M:%S"
env | grep NODE
env | sort
ps aux | grep node
sleep 2 && curl -s http://localhost:3000/health
curl -s http://localhost:3000/api/users | jq '.[0]'
curl -sS -o /dev/null -w '%{http_code}' http://localhost:8080
curl -I https://example.com
curl -fsSL https://example.com/health
git status
git status -s
git status --porcelain
git diff
git diff --stat
git diff HEAD~1
git diff --cached
git diff main...HEAD --name-only
git diff -- src/index.ts
git diff -- '*.ts'
git diff -- *.ts
git diff src/*.ts
git diff > changes.patch
git log --oneline -10
git log --oneline --graph --all | head -30
git log -p -1
git log --since="1 week ago" --pretty=format:"%h %s"
git log -n 5 --stat
git log --follow -- src/index.ts
git log --author="Ann" --oneline | wc -l
git show HEAD
git show HEAD:package.json
git show --stat HEAD~2
git branch
git branch -a
git branch --show-current
git checkout -b feature/x
git checkout main
git checkout -- src/index.ts
git switch -c fix/y
git restore src/index.ts
git restore --staged .
git add .
git add -A
git add src/*.ts
git add -u && git commit -m "fix: handle empty input"
git commit -m "feat: add parser" -m "It reads files."
git commit --amend --no-edit
git commit -am "wip"
git stash
git stash pop
git stash list
git fetch
git fetch origin main
git fetch --all --prune
git pull
git pull --rebase origin main
git merge origin/main
git rebase main
git rebase --continue
git remote -v
git rev-parse HEAD
git rev-parse --abbrev-ref HEAD
git blame -L 10,20 src/index.ts
git ls-files | grep test
git ls-files '*.ts' | xargs wc -l
git grep -n "parse" -- src
git tag
git tag -l 'v1.*'
git describe --tags --always
git reflog -5
git --no-pager diff
git --no-pager log -3 --stat
npm test
npm test -- --coverage
npm test -- src/a.test.ts -t "parses"
npm test --silent
npm run build
npm run build 2>&1 | tail -20
npm run lint -- --fix
npm run test:unit
npm run dev &
npm ci
npm install
npm install lodash
npm install --save-dev typescript@5.9 @types/node
npm ls react
npm outdated
npm view react version
npm audit --audit-level=high
npm --version
npm run build && npm test
CI=1 npm test
CI=true npm run build
NODE_ENV=test npm test
FORCE_COLOR=0 npm test 2>&1 | head -100
RUST_BACKTRACE=1 cargo test
CI=1 NODE_ENV=production npm run build
env CI=1 npm test
npm test > test.log 2>&1
npm run build > build.log 2>&1
npm run build > build.log 2>&1; tail -20 build.log
npm test 2>&1 | tee test.log
npm run build 2> errors.txt
ls > files.txt
npx tsc --noEmit
npx eslint src --max-warnings=0
npx eslint "src/**/*.ts"
npx prettier --check .
npx vitest run src/a.test.ts
pnpm install
pnpm test
pnpm run build
pnpm build
pnpm lint
pnpm --filter core test
yarn test
yarn install --frozen-lockfile
yarn build
node --version
node --test
node --test src/a.test.ts
node --test 'src/**/*.test.ts'
node scripts/build.js --minify
tsc --noEmit
tsc -p tsconfig.build.json
eslint . --ext .ts,.tsx
prettier --check src
jest --coverage
jest src/a.test.ts -t 'name'
vitest run
python3 --version
python3 -m pytest
python3 -m pytest tests/test_a.py::test_b -q
python3 -m pytest -k "parse and not slow" -x
python3 manage.py test
pytest -q
pytest tests/ --maxfail=1 --tb=short
pip list
pip install requests==2.32.0
pip install -r requirements.txt
ruff check .
mypy src
cargo build
cargo build --release
cargo test
cargo test parser -- --nocapture
cargo check --all-targets
cargo clippy -- -D warnings
cargo run
cargo run -- --help
cargo fmt --check
go test ./...
go test -v -run TestParse ./pkg/parser
go test -race -count=1 ./...
go build ./...
go vet ./...
go mod tidy
go version
make
make test
make -j8
make -j 4 all
make clean build
make test V=1
./gradlew test
cmake --build build
gcc -Wall -o app main.c
docker ps
docker ps -a --format '{{.Names}}'
docker logs -f --tail 100 web
docker images | grep app
docker build -t app:latest .
docker compose up -d
docker compose ps
docker compose logs --tail=50 web
docker compose down
kubectl get pods
kubectl get pods -n staging -o wide
kubectl -n staging get svc
kubectl logs deploy/web --tail=100
kubectl describe pod web-1
kubectl get deploy web -o jsonpath='{.spec.replicas}'
gh pr list --limit 5
gh pr view 12 --comments
while ! curl -s localhost:3000 > /dev/null; do sleep 1; done
until curl -s localhost:3000; do sleep 1; done
if [ -f package.json ]; then cat package.json; fi
[ -d dist ] && ls dist || echo "no dist"
test -f .env && echo yes
mkdir -p dist/assets
touch src/new.ts
tar -tzf app.tgz
sha256sum dist/*
command -v docker
true && echo done
ls missing 2>/dev/null || true
echo start; npm run build; echo end
npm run lint && npm test && npm run build
npm test &> test.log; tail -n 5 test.log
time npm test
timeout 60 npm test
timeout 120 cargo test
uname -a && whoami
`
  .split('\n')
  .filter((line) => line !== '')
  .concat(['if [ -d node_modules ]; then\n  npm test\nelse\n  npm ci\nfi', 'npm test \\\n  -- --watch=false'])
