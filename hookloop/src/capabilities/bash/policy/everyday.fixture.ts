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
  deny: ['rm', 'curl', 'touch', 'sudo', 'git push'],
}

/** Everyday commands, which must not be stopped because of a word or a character in them. */
export const everyday: readonly string[] = String.raw`
ls
ls -la
ls -la src test
ls -lah --time-style=long-iso
ls -- -x
ls node_modules/.bin
pwd
whoami
cat README.md
cat package.json tsconfig.json
cat "file with spaces.txt"
cat 'a b'/"c d".txt
cat a\ b.txt
cat < a.txt
cat <<< "hello"
cat a.txt | grep -v b > /dev/null
cat a.txt b.txt | sort | uniq -c | sort -rn | head -20
ls | sort | head -5 2>/dev/null
ls >/dev/null 2>&1
ls &>/dev/null
ls 2>&1 | head
ls nothing 2>/dev/null || echo missing
ls; pwd
ls && pwd && whoami
ls || true
ls |& cat
ls &
sleep 1 & wait
ls # rm -rf everything
ls \#x
echo hello world
echo "do not rm this"
echo 'curl is a tool, so is rm'
echo rm
echo "touch; rm && curl | sudo"
echo "shutdown hook"
echo "a;b&&c|d>e<f"
echo "price: \$5"
echo 'costs $5 and $(nothing) runs'
echo it\'s
echo "it's"
echo 'say "hi"'
echo a#b
echo a=b
echo --output=x
echo 100%
echo {}
echo a{b}c
echo "{a,b}" '*' "?"
echo HEAD~1 a~b
echo !important
echo "wow!"
echo -n x
echo -e 'a\tb'
echo ''
echo err >&2
echo done > /dev/stderr
echo naïve café 日本 ✓
echo "👩‍💻 works"
printf '%s\n' a b c
printf "%5.2f\n" 3.14159
printf 'no newline'
grep -rn "touch" src
grep -rn 'rm -rf' docs
grep -r reboot src
grep -E '^(foo|bar)$' a.txt
grep "foo$" a.txt
grep -n "a\"b" a.txt
grep -n 'it'\''s' a.txt
grep -c '' a.txt
grep -rn --include='*.ts' "export function" src
grep -rl --exclude-dir=node_modules deprecated .
grep -q foo a.txt && echo found
grep -oP '(?<=id=)\d+' a.txt
grep -v '^#' .env.example
grep -A3 -B2 'sudo' notes.md
egrep 'a|b' f
! grep -q foo a.txt
rg "a|b" src
rg -n --glob '*.ts' 'curl\(' src
rg --files -g '!dist'
rg -l --type ts 'import .* from'
fd -e ts . src
find . -name '*.ts'
find . -name "*.ts" -type f | head -20
find . -type f -not -path './node_modules/*'
find src \( -name '*.ts' -o -name '*.js' \) -print
find . -maxdepth 2 -type d ! -name node_modules
find . -mtime -7 -size +10k -print0
find . -name 'rm*'
find . -empty -type d
find . -path ./node_modules -prune -o -name '*.md' -print
find . -newermt 2024-01-01 -printf '%p\n'
sort -k2,2n -t: a.txt
sort -u a.txt
sort -rn --key=2 a.txt
sort --reverse --unique a.txt
uniq -c a.txt
uniq -f 1 a.txt
head -n 5 a.txt
head -5 a.txt
head -c 100 a.bin
tail -n +2 a.txt
tail -20 log.txt
wc -l a.txt b.txt
wc -l < a.txt
cut -d: -f1 /etc/passwd
cut -d ' ' -f 2- a.txt
tr 'a-z' 'A-Z' < a.txt
tr -d '\n' < a.txt
diff -u a.txt b.txt
diff -rq a b
comm -12 a.txt b.txt
sed -n '1,20p' a.txt
sed -n 5p a.txt
sed '$d' a.txt
awk '{print $1}' a.txt
awk -F: '{print $1, $3}' /etc/passwd
date
date +%Y-%m-%d
date -u +"%Y-%m-%dT%H:%M:%SZ"
date -d yesterday +%s
date -Iseconds
uname -a
hostname
which node
which rm
type curl
command -v git
file a.bin
stat -c '%s' a.txt
du -sh src
df -h
tree -L 2 src
basename /a/b.txt .txt
realpath src
seq 1 10
jq '.a | .b' package.json
jq -r '.scripts | keys[]' package.json
jq '.dependencies["curl"]' package.json
test -f a.txt && echo yes || echo no
[ -d src ] && ls src
[ "a" = "b" ] || echo differs
{ ls; pwd; }
if true; then ls; else pwd; fi
while false; do ls; done
until true; do ls; done
time ls
timeout 5 ls
timeout -s KILL 10s grep -rn foo src
nice -n 10 find . -name x
nohup ls
command ls
stdbuf -oL grep x a.txt
ps aux
ps -ef | grep node
ps -p 1 -o pid,comm
env
man ls
man curl
tar tf a.tar
tar -tzf a.tgz
base64 a.txt
sha256sum a.txt
git status
git status --short --branch
git status && git diff
git log
git log --oneline -10
git log --grep 'curl'
git log --grep=mkfs
git log --format='%h $s'
git log --pretty=format:"%h %an %s" -n 5
git log --since="2 weeks ago" --author='Ann'
git log -p -- src/index.ts
git log HEAD~3..HEAD
git log --all --graph --decorate --oneline
git log -S'push' --oneline
git log -SOAuth
git --no-pager log -5
git diff
git diff --stat
git diff HEAD^ HEAD
git diff --cached --name-only
git diff main...HEAD -- '*.ts'
git diff --no-ext-diff
git show HEAD@{1}
git show stash@{0}
git show HEAD:src/index.ts
git branch
git branch -a --sort=-committerdate
git blame -L 1,20 a.ts
git ls-files | wc -l
git rev-parse --abbrev-ref HEAD
git rev-parse @{u}
git grep -n push
git add -A
git add src/rm.ts
git commit -m "a; b && c"
git commit -m "fix: don't rm -rf the cache"
git commit -m "push the button"
git stash list
git remote -v
git config --get user.name
git tag --list
npm test
npm test -- --coverage
npm run build
npm run test:unit -- --watch=false
npm ls --depth=0
node --version
node --test src/a.test.ts
python3 --version
python3 -m pytest -q tests
tsc --noEmit -p tsconfig.json
cargo test --release
go test ./...
make
make -j4 test
docker ps --format '{{.Names}}'
./gradlew test
find . -name '*.ts' | xargs grep foo
find . -perm -u+x -type f
find . -perm -g=w -nowarn
sort --random-source=/dev/zero -R a.txt
printf -- '--\n'
xxd -l 16 a.bin
timeout --foreground 5 ls
timeout --preserve-status --kill-after=5 10 ls
time -p ls
git log @{u}..
git log HEAD@{2}..HEAD
git diff --submodule=short
`
  .split('\n')
  .filter((line) => line !== '')
  .concat([
    'ls\npwd\n\n# a comment with rm\ngit status\n',
    'ls \\\n  -la \\\n  src',
    'echo "two\nlines"',
    "grep -n 'two\nlines' a.txt",
    'if ls\nthen\n  pwd\nfi',
    '  ls  ',
    '\tls\t-la',
  ])
