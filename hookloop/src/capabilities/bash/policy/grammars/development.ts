/** Compilers, test runners, package managers and other programs of developers. They use settings of their folder. */
export const development = `
@npm: !whole -- -s,q,d,ws --silent,quiet,verbose,json,long,parseable,all,workspaces,include-workspace-root,if-present,ignore-scripts,foreground-scripts,no-color,color
  --no-audit,no-fund,offline,prefer-offline,dry-run,version,help -w=below --workspace=below --depth,loglevel=
npm: !whole -v,h,s --silent run
npm test, npm t, npm tst, npm start, npm stop, npm restart, npm run, npm run-script: @npm any*
npm ls, npm list, npm outdated, npm view, npm info, npm explain, npm why, npm ping, npm root, npm prefix, npm search, npm whoami, npm query, npm
  help-search: @npm -g,l,a --global,production,link,package-lock-only --omit=dev|optional|peer any*
npm audit: @npm --audit-level=low|moderate|high|critical|none --omit=dev|optional|peer
npm config get, npm config list, npm config ls: !whole -l --json any*
npm ci: !named @npm --omit=dev|optional|peer
npm install, npm i, npm add, npm uninstall, npm remove, npm rm, npm update, npm dedupe, npm prune: !named @npm -D,E,O,P,S
  --save,save-dev,save-exact,save-optional,save-prod,no-save,package-lock-only,legacy-peer-deps --omit=dev|optional|peer package*
pnpm, yarn: !whole -v,h,s,r --silent,recursive -F= --filter= run
pnpm test, pnpm t, pnpm run, pnpm start, pnpm build, pnpm lint, yarn test, yarn run, yarn start, yarn build, yarn lint: !whole -- -r,s,w
  --recursive,silent,if-present,parallel,stream,no-bail --filter,F=below any*
pnpm install, pnpm i, pnpm add, pnpm remove, yarn install, yarn add, yarn remove: !named !whole -D,E,O,P,r,w
  --save-dev,dev,exact,frozen-lockfile,immutable,offline,prefer-offline,ignore-scripts,recursive --silent,no-frozen-lockfile --filter=below package*
node, nodejs: !first -vh run any*
node --test: --watch,test-only,no-warnings,enable-source-maps,trace-warnings,experimental-strip-types,experimental-test-coverage,test-force-exit,trace-uncaught
  --test-reporter=spec|tap|dot|junit|lcov --test-name-pattern,test-skip-pattern,test-concurrency,test-timeout,test-shard= --test-reporter-destination=stdout|stderr below*
python, python3: !first -VhB run any*
pytest, py.test, python -m pytest, python3 -m pytest: -qvxsl -# -kmnr=
  --lf,last-failed,ff,failed-first,nf,sw,stepwise,collect-only,co,no-header,no-summary,verbose,quiet,exitfirst,showlocals --disable-warnings,no-cov,fixtures,markers,version
  --maxfail,durations,timeout,numprocesses,color,verbosity,deselect= --tb=auto|long|short|line|native|no --capture=fd|sys|no|tee-sys --cov?below
  --cov-report=term|term-missing| --ignore=below below*
python -m unittest, python3 -m unittest: -vqfcb -k= --verbose,quiet,failfast,catch,buffer,locals discover|
pip list, pip3 list, python3 -m pip list: -lou --outdated,local,user
pip install, pip3 install, python3 -m pip install: !named -qU -r=below --quiet,upgrade,user --requirement=below package*
pip show, pip check, pip3 show, pip3 check, python3 -m pip show: any*
ruff check: -qv --quiet,verbose,statistics,diff,no-fix,no-cache --select,ignore,line-length= --output-format=text|json|github|concise|full|grouped below*
mypy: -v --strict,ignore-missing-imports,verbose --python-version= below*
flake8, pylint, pyright: below*
tsc: !whole -w,b,v,h --noEmit,watch,build,strict,pretty,skipLibCheck,incremental,showConfig,listFiles,traceResolution,noErrorTruncation,verbose,version,help,dry -p=below
  --pretty,skipLibCheck,noEmit?true|false --target,module,moduleResolution,lib,jsx= --project=below below*
eslint: --quiet,cache,no-cache,color,no-color,no-error-on-unmatched-pattern,report-unused-disable-directives,debug,version --ext,max-warnings=
  -f=stylish|json|compact|unix --format=stylish|json|compact|unix below*
prettier: -cl --check,list-different,no-color,ignore-unknown,no-error-on-unmatched-pattern --log-level= below*
jest: -iobuwv
  --runInBand,coverage,watch,watchAll,verbose,silent,ci,bail,onlyChanged,onlyFailures,passWithNoTests,detectOpenHandles,forceExit,updateSnapshot,listTests,no-cache
  --expand,no-coverage,colors,json -t= --testNamePattern,testPathPattern,testPathPatterns,maxWorkers,shard= --watchAll,coverage,watch,bail,ci?true|false any*
vitest init, vitest bench: run*
vitest, vitest run, vitest list: -u -t= --run,coverage,watch,silent,ui,update,passWithNoTests,no-coverage,typecheck --coverage,watch,run?true|false
  --reporter=default|verbose|dot|json|tap|basic --testNamePattern,project,shard,bail,retry,testTimeout= below*
@cargo: -vqr -pjF= --verbose,quiet,release,all-features,no-default-features,locked,offline,frozen --package,features,bin,example,jobs,profile,message-format=target
  --color=auto|always|never
@cargo-all: @cargo --all,workspace,lib,bins,tests,benches,examples,all-targets --test,bench,exclude=target
cargo: !first -vVq --verbose,quiet,list run
cargo build, cargo b, cargo check, cargo c: @cargo-all --keep-going
cargo doc: @cargo --no-deps,document-private-items,workspace,lib
cargo test, cargo t, cargo bench, cargo clippy, cargo nextest run: @cargo-all --no-run,no-fail-fast any*
cargo run, cargo r: !named @cargo any*
cargo fmt: !named -v --all,check,verbose -p=
@go: !whole -v,race,short,cover,a,n,x,json,failfast,trimpath,fullpath,u,m,deps,test,versions,e
  -run,bench,count,timeout,tags,p,cpu,parallel,skip,covermode,benchtime,shuffle,ldflags-none,f,list=
go: !whole run
go test: @go -coverprofile=data -coverpkg= below*
go build, go vet, go list: @go below*
go version, go env, go doc, go help, go mod graph, go mod verify, go mod why: !whole -m,v,json,all,short,src any*
go mod tidy, go mod download, go fmt: !named !whole -v,x,json,n below*
make, gmake: -kBinqrRsSw -jl?count --jobs,load-average?count
  --keep-going,silent,quiet,dry-run,just-print,always-make,question,no-print-directory,print-directory,ignore-errors target*
cmake --build: -v -jt= --verbose --parallel?number --target,config=target below
gcc, g++, cc, c++, clang, clang++: !whole -c,S,E,g,O0,O1,O2,O3,Os,Og,Wall,Wextra,Werror,Wpedantic,pedantic,ansi,fPIC,fsyntax-only,pthread,static,shared,w,v,M,MM,lm,lpthread
  -std=c89|c99|c11|c17|c18|c2x|c23|gnu99|gnu11|gnu17|c++11|c++14|c++17|c++20|c++23 --version -o=binary source*
gradle, gradlew: !whole -q,i,s,d --info,stacktrace,offline,quiet,continue,parallel,no-daemon,version,dry-run --console=plain| --tests= target*
docker, docker compose, docker-compose, podman: !first -v --version run
docker ps, docker images, docker logs, docker inspect, docker info, docker version, docker stats, docker top, docker port, docker history, docker search, docker diff,
  docker events, docker volume ls, docker volume inspect, docker network ls, docker network inspect, docker image ls, docker image inspect, docker container ls, docker
  container inspect, docker container logs, docker context ls, docker system df, podman ps, podman images, podman logs, podman inspect: -aqlsft -n=
  --all,quiet,latest,no-trunc,size,follow,timestamps,no-stream,digests,details,verbose --filter,format,tail,since,until,last,type= any*
docker compose ps, docker compose logs, docker compose config, docker compose ls, docker compose images, docker compose top, docker compose version, docker-compose ps,
  docker-compose logs: -aqft -n= --all,quiet,follow,timestamps,services,no-color,no-log-prefix --tail,since,until,format,filter= any*
docker compose up, docker compose down, docker compose restart, docker compose start, docker compose stop, docker compose build, docker compose pull, docker-compose up,
  docker-compose down: !named -dvq -t= --detach,build,no-build,wait,force-recreate,no-deps,remove-orphans,no-cache,pull,quiet-pull,volumes --timeout= any*
docker build, docker image build: !named -q -t= --no-cache,pull,quiet --tag,target,platform= .|./
@kubectl: -n= --namespace,context= -A --all-namespaces
kubectl: @kubectl run
kubectl logs: @kubectl -fp -lc= --follow,previous,all-containers,timestamps,prefix --selector,container,tail,since,since-time,limit-bytes= any*
kubectl get, kubectl describe, kubectl top, kubectl explain, kubectl api-resources, kubectl api-versions, kubectl version, kubectl cluster-info, kubectl events: @kubectl -w
  -lL= --watch,show-labels,no-headers,recursive,client,ignore-not-found --selector,field-selector,sort-by,label-columns= -o=output --output=output any*
kubectl config view, kubectl config current-context, kubectl config get-contexts, kubectl config get-clusters, kubectl rollout status, kubectl rollout history, kubectl auth
  can-i: @kubectl --minify -o=output any*
curl: !named -sSfLIivk46gZ -X=GET|HEAD|OPTIONS -HAe=text -m=number -w=text -o=/dev/null|- -r=text
  --silent,show-error,fail,location,head,include,verbose,compressed,http1.1,http2,ipv4,ipv6,insecure --request=GET|HEAD|OPTIONS --header,user-agent,referer,write-out=text
  --max-time,connect-timeout,retry,retry-delay,max-redirs=number --output=/dev/null|- http*
brew list, brew info, brew search, brew deps, brew outdated, brew --version: -qv1 --json,versions,formula,cask any*
gh pr list, gh pr view, gh pr status, gh pr diff, gh pr checks, gh issue list, gh issue view, gh run list, gh run view, gh repo view, gh release list, gh release view, gh
  auth status: -c -BHLRSalsjq= --comments,log,log-failed,verbose,exit-status --limit,state,label,author,assignee,search,base,json,job,repo,jq= any*
`
