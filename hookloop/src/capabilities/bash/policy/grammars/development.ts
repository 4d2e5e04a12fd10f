/** Compilers, test runners, package managers and other programs of developers. They use settings of their folder. */
export const development = `
@npm: !whole -- -s,q,d,ws --silent,quiet,verbose,json,long,parseable,all,workspaces,include-workspace-root,if-present,ignore-scripts,foreground-scripts,no-color,color
  --no-audit,no-fund,offline,prefer-offline,dry-run,version,help -w=below --workspace=below --depth,loglevel=
npm: !whole -v,h,s --silent run
npm test, npm t, npm tst, npm start, npm stop, npm restart: @npm any*
npm run, npm run-script: @npm task any*
@npm-list: @npm -g,l,a --global,production,link,package-lock-only --omit,include=dev|optional|peer
npm ls, npm list, npm outdated, npm view, npm info, npm explain, npm why, npm ping, npm root, npm prefix, npm search, npm whoami, npm sbom: @npm-list package*
npm query, npm help-search, npm pkg get: @npm-list any*
npm fund, npm doctor: @npm
npm audit: @npm --production,package-lock-only --include=dev|optional|peer --audit-level=low|moderate|high|critical|none --omit=dev|optional|peer
npm config get, npm config list, npm config ls: !whole -l --json any*
npm pack: !named @npm
npm version: !named @npm -f -m= --force,no-git-tag-version,git-tag-version,allow-same-version,no-commit-hooks --message,preid= target
npm ci: !named @npm -f --force,legacy-peer-deps,strict-peer-deps,no-bin-links,no-optional --omit,include=dev|optional|peer
npm install, npm i, npm add, npm uninstall, npm remove, npm rm, npm update, npm dedupe, npm prune: !named @npm -D,E,O,P,S
  --save,save-dev,save-exact,save-optional,save-prod,no-save,package-lock-only,legacy-peer-deps,force,strict-peer-deps,prefer-dedupe,no-package-lock,no-optional,engine-strict,audit
  --omit,include=dev|optional|peer package*
pnpm: !whole -v,h,s,r,w --silent,recursive,workspace-root,version,if-present,parallel,stream,no-bail,offline -F=project --filter=project script any*
@scripts: !whole -- -r,s,w,u -t= --recursive,silent,if-present,parallel,stream,no-bail,coverage,run,ci,passWithNoTests,verbose,runInBand,quiet
  --watch,watchAll,coverage?true|false --testNamePattern,testPathPattern,maxWorkers= --filter=project -F=project task any*
pnpm test, pnpm t, pnpm run, pnpm start, pnpm build, pnpm lint, pnpm dev, pnpm typecheck, pnpm type-check, pnpm format, pnpm check, pnpm e2e, yarn test, yarn run, yarn start, yarn build, yarn lint, yarn dev, yarn typecheck, yarn type-check, yarn format, yarn check, yarn e2e, yarn workspaces run, yarn
  workspaces foreach run: @scripts
yarn: !named !whole -s,v,h --silent,frozen-lockfile,immutable,offline,prefer-offline,ignore-scripts,version script any*
yarn workspace: !named !whole any script any*
pnpm list, pnpm ls, pnpm why, pnpm outdated, pnpm licenses list, pnpm root, pnpm bin, pnpm audit, pnpm store path, yarn why, yarn list, yarn info, yarn outdated, yarn
  versions, yarn workspaces info, yarn workspaces list, yarn audit, yarn bin, bun pm ls, bun outdated: !whole -r,g,P,D,A,R --recursive,json,long,parseable,prod,dev,all,global
  --no-optional,silent,compatible --depth,pattern,level= -F=project --filter=project package*
bun install, bun i, bun add, bun remove: !named -dDE --dev,exact,frozen-lockfile,production,no-save,dry-run,ignore-scripts package*
bun run: !whole -- -b --silent,bun,watch,if-present script any*
bun test: -t= --watch,coverage,bail,only,todo --timeout,test-name-pattern,rerun-each=any code*
deno lint, deno check: --json,quiet,rules,all below*
pnpm install, pnpm i, pnpm ci, pnpm add, pnpm remove, yarn install, yarn add, yarn remove: !named !whole -D,E,O,P,r,w
  --save-dev,dev,save-exact,prod,production,force,lockfile-only,exact,frozen-lockfile,immutable,offline,prefer-offline,ignore-scripts,recursive --silent,no-frozen-lockfile,check-files,non-interactive,no-progress,pure-lockfile,ignore-engines,ignore-optional,no-optional,shamefully-hoist,strict-peer-dependencies
  --production?true|false --network-timeout,mode=target --filter=project package*
node, nodejs: !first -vh run any*
node --check, node -c: below*
node --test: --watch,test-only,no-warnings,enable-source-maps,trace-warnings,experimental-strip-types,experimental-test-coverage,test-force-exit,trace-uncaught
  --test-reporter=spec|tap|dot|junit|lcov --test-name-pattern,test-skip-pattern,test-concurrency,test-timeout,test-shard= --test-reporter-destination=stdout|stderr code*
python, python3: !first -VhB run any*
python -m json.tool, python3 -m json.tool: !named --sort-keys,no-ensure-ascii,json-lines,tab,compact,no-indent --indent= any
python -m venv, python3 -m venv: !named --clear,upgrade,system-site-packages,without-pip --prompt= below
python -m compileall, python3 -m compileall, python -m py_compile, python3 -m py_compile: !named -qfl below*
pytest, py.test, python -m pytest, python3 -m pytest: -qvxsl -# -kmnr=text -p=no:cacheprovider|no:warnings|no:randomly --strict-markers,setup-show,no-cov-on-fail,cache-show,full-trace
  --durations-min,cov-fail-under,log-level,log-cli-level=text
  --lf,last-failed,ff,failed-first,nf,sw,stepwise,collect-only,co,no-header,no-summary,verbose,quiet,exitfirst,showlocals --disable-warnings,no-cov,fixtures,markers,version
  --maxfail,durations,timeout,numprocesses,color,verbosity,deselect=text --tb=auto|long|short|line|native|no --capture=fd|sys|no|tee-sys --cov?below
  --cov-report=term|term-missing|term-missing:skip-covered| --ignore=below code*
python -m unittest, python3 -m unittest: -vqfcb -k= --verbose,quiet,failfast,catch,buffer,locals discover|
pip list, pip3 list, python3 -m pip list, python -m pip list, pip freeze, pip3 freeze, python3 -m pip freeze: -loue --outdated,local,user,uptodate,editable,exclude-editable
  --not-required --format=columns|freeze|json --exclude=
pip install, pip3 install, python3 -m pip install, python -m pip install: !named -qvU -r=code --quiet,verbose,upgrade,user,no-deps,no-cache-dir,dry-run,pre
  --disable-pip-version-check,no-input,force-reinstall --requirement,constraint=code package*
pip config list, pip cache list, pip index versions, pip show, pip check, pip3 show, pip3 check, python3 -m pip show: any*
ruff check: -qvn --quiet,verbose,statistics,diff,no-fix,no-cache,show-files,show-settings,preview,no-preview,exit-zero,show-fixes,watch
  --select,ignore,extend-select,extend-ignore,line-length,target-version,exclude=text --output-format=text|json|github|concise|full|grouped below*
ruff format, black, isort: !named -qv -l=number --quiet,verbose,check,check-only,diff,fast,safe,no-cache,preview,color,no-color --profile=black| --line-length=number below*
ruff rule, ruff version, ruff linter: --all text*
mypy: -v -pm=text --strict,ignore-missing-imports,verbose,pretty,no-pretty,show-error-codes,hide-error-codes,show-error-context,show-column-numbers,no-error-summary,no-incremental
  --namespace-packages,explicit-package-bases,check-untyped-defs,disallow-untyped-defs,warn-unused-ignores,warn-return-any,no-color-output,no-strict-optional
  --python-version,exclude,package,module,follow-imports=text below*
pyright: --verbose,stats below*
flake8, pylint: -v --count,statistics,show-source,verbose,errors-only --max-line-length,max-complexity,select,ignore,extend-ignore,exclude,disable,enable= below*
tsc, pnpm tsc, yarn tsc, vue-tsc, pnpm vue-tsc: !named !whole --listFilesOnly,diagnostics,extendedDiagnostics,explainFiles,noUnusedLocals,noUnusedParameters,noImplicitAny,all,preserveWatchOutput
  --emitDeclarationOnly,declaration,force,allowJs,checkJs,esModuleInterop,isolatedModules,strictNullChecks,noUncheckedIndexedAccess -w,b,v,h --noEmit,watch,build,strict,pretty,skipLibCheck,incremental,showConfig,listFiles,traceResolution,noErrorTruncation,verbose,version,help,dry -p=code
  --pretty,skipLibCheck,noEmit?true|false --target,module,moduleResolution,lib,jsx= --project=code code*
eslint, pnpm eslint, yarn eslint: --no-inline-config,fix-dry-run,stats,no-warn-ignored,no-ignore,exit-on-fatal-error,env-info,pass-on-no-patterns --ignore-pattern,rule= --print-config=below
  --quiet,cache,no-cache,color,no-color,no-error-on-unmatched-pattern,report-unused-disable-directives,debug,version --ext,max-warnings=
  -f=stylish|json|compact|unix|html|tap|junit|checkstyle --format=stylish|json|compact|unix|html|tap|junit|checkstyle below*
prettier, pnpm prettier, yarn prettier: -cl --check,list-different,no-color,ignore-unknown,no-error-on-unmatched-pattern --log-level= below*
jest, pnpm jest, yarn jest: -iobuv -w= --testTimeout,selectProjects,collectCoverageFrom,testPathIgnorePatterns,openHandlesTimeout= --changedSince=target --findRelatedTests,showConfig,logHeapUsage,randomize
  --noStackTrace,lastCommit,errorOnDeprecated,no-colors,color,no-color,debug,all
  --runInBand,coverage,watch,watchAll,verbose,silent,ci,bail,onlyChanged,onlyFailures,passWithNoTests,detectOpenHandles,forceExit,updateSnapshot,listTests,no-cache
  --expand,no-coverage,colors,json -t= --testNamePattern,testPathPattern,testPathPatterns,maxWorkers,shard= --watchAll,coverage,watch,bail,ci?true|false any*
playwright test, pnpm playwright test, yarn playwright test: !named -x -gj= --headed,quiet,forbid-only,fully-parallel,last-failed,list,pass-with-no-tests,update-snapshots
  --grep,grep-invert,project,workers,retries,shard,timeout,repeat-each,max-failures,global-timeout= --reporter=list|line|dot|json|junit|html|github --trace=on|off|retain-on-failure below*
vitest init, vitest bench: run*
vitest, vitest run, vitest list, pnpm vitest, yarn vitest, pnpm vitest run, yarn vitest run: --hideSkippedTests,no-file-parallelism,globals,dom,changed,logHeapUsage,allowOnly,no-color
  --standalone,isolate,no-isolate,no-watch,clearScreen --maxWorkers,hookTimeout,maxConcurrency= --pool=threads|forks|vmThreads|vmForks
  -u -t= --run,coverage,watch,silent,update,passWithNoTests,no-coverage,typecheck --coverage,watch,run?true|false
  --reporter=default|verbose|dot|json|tap|basic --testNamePattern,project,shard,bail,retry,testTimeout= below*
@cargo: -vqr -pjF= --verbose,quiet,release,all-features,no-default-features,locked,offline,frozen --package,features,bin,example,jobs,profile,message-format=target
  --color=auto|always|never
@cargo-all: @cargo --all,workspace,lib,bins,tests,benches,examples,all-targets --test,bench,exclude=target
cargo: !first -vVq --verbose,quiet,list run
cargo build, cargo b: !named @cargo-all --keep-going
cargo check, cargo c: @cargo-all --keep-going
@cargo-tool: -vq --verbose,quiet,locked,offline,frozen --color=auto|always|never
cargo tree: @cargo-tool -d -ipeF= --all-features,no-default-features,workspace,duplicates,no-dedupe --invert,package,edges,depth,prefix,charset,features=target
cargo metadata: @cargo-tool -F= --all-features,no-default-features,no-deps --format-version,features=target
cargo update: !named @cargo-tool --dry-run,workspace --precise= target*
cargo add: !named @cargo-tool -pF= --dev,build,optional,no-optional,dry-run,no-default-features --package,features=target package*
cargo doc: @cargo --no-deps,document-private-items,workspace,lib
cargo test, cargo t, cargo bench, cargo nextest run: @cargo-all --no-run,no-fail-fast libtest*
cargo clippy: @cargo-all --no-deps lint*
cargo run, cargo r: !named @cargo any*
cargo fmt: !named -v --all,check,verbose -p= rustfmt*
rustfmt: !named --check,verbose,quiet -vql --edition=2015|2018|2021|2024 below*
rustc: -vV --verbose,version
rustup show, rustup toolchain list: -v --verbose
rustup target list, rustup component list: --installed
@go: !whole -benchmem -vet=off|all -mod=mod|vendor|readonly -buildvcs?true|false -v,race,short,cover,a,n,x,json,failfast,trimpath,fullpath,u,m,deps,test,versions,e
  -run,bench,count,timeout,tags,p,cpu,parallel,skip,covermode,benchtime,shuffle,f,list=
go: !whole run
go test: @go -coverprofile=data -coverpkg= unversioned*
go build: !named @go unversioned*
go vet, go list: @go unversioned*
go get: !named @go below*
go run: !named @go unversioned*
go clean -testcache, go clean -cache: !named
gofmt: !whole -l,s,d,e below*
staticcheck, golangci-lint run, govulncheck: !named -v --fast --timeout=any below*
go tool cover: !whole -func=below
go version, go env, go doc, go help, go mod graph, go mod verify, go mod why: !whole -m,v,json,all,short,src any*
go mod tidy, go mod download, go fmt: !named !whole -v,x,json,n below*
make, gmake: -kBinqrRsSw -jl?count --jobs,load-average?count
  --keep-going,silent,quiet,dry-run,just-print,always-make,question,no-print-directory,print-directory,ignore-errors target*
ctest: !named -VNQ -RELEj= --output-on-failure,verbose,quiet,show-only,rerun-failed,stop-on-failure,progress --test-dir=below --timeout,parallel,tests-regex,exclude-regex=
ninja: !named -nv -jlk=number -C=below target*
cmake --build: -v -jt= --verbose --parallel?number --target,config=target below
gcc, g++, cc, c++, clang, clang++: !named !whole -c,g,O0,O1,O2,O3,Os,Og,Wall,Wextra,Werror,Wpedantic,pedantic,ansi,fPIC,fsyntax-only,pthread,static,shared,w,v,M,MM,lm,lpthread
  -std=c89|c99|c11|c17|c18|c2x|c23|gnu99|gnu11|gnu17|c++11|c++14|c++17|c++20|c++23 --version -o=binary source*
mvn, mvnw: !named !whole -q,B,o,e,U,X,am,amd,ntp,fae,ff,fn,V,v,N -pl,rf,T= --quiet,batch-mode,offline,errors,also-make,also-make-dependents,no-transfer-progress,fail-at-end,version
  -DskipTests,DskipITs -DskipTests,DskipITs,Dmaven.test.skip,DfailIfNoTests,Dsurefire.failIfNoSpecifiedTests,Dcheckstyle.skip,Dspotless.check.skip?true|false -Dtest,Dit.test?target
  clean|validate|compile|test-compile|test|package|verify|install|site|dependency:tree|dependency:list|dependency:analyze|dependency:resolve|help:effective-pom|spotless:check|checkstyle:check*
gradle, gradlew: !named !whole -x=target -a,w,S,v,m --rerun-tasks,build-cache,no-build-cache,configuration-cache,no-configuration-cache,fail-fast,warn,debug,full-stacktrace,all,refresh-dependencies
  -q,i,s,d --info,stacktrace,offline,quiet,continue,parallel,no-daemon,version,dry-run --console=plain| --tests= target*
docker, podman: !first -v --version run
docker compose, docker-compose: !first -v -fp=compose --version --file=compose --profile,project-name=target run
docker ps, docker images, docker logs, docker inspect, docker info, docker version, docker stats, docker port, docker history, docker diff,
  docker events, docker volume ls, docker volume inspect, docker network ls, docker network inspect, docker image ls, docker image inspect, docker container ls, docker
  container inspect, docker container logs, docker context ls, docker system df, podman ps, podman images, podman logs, podman inspect: -aqlsft -n=
  --all,quiet,latest,no-trunc,size,follow,timestamps,no-stream,digests,details,verbose --filter,format,tail,since,until,last,type= any*
docker top: any
docker compose ps, docker compose logs, docker compose config, docker compose ls, docker compose images, docker compose top, docker compose version, docker-compose ps,
  docker-compose logs: -aqft -n= --all,quiet,follow,timestamps,services,no-color,no-log-prefix --tail,since,until,format,filter= any*
docker compose up, docker compose down, docker compose restart, docker compose start, docker compose stop, docker compose build, docker compose pull, docker-compose up,
  docker-compose down: !named -dvq -t= --detach,build,no-build,wait,force-recreate,no-deps,remove-orphans,no-cache,pull,quiet-pull,volumes --timeout= any*
docker build, docker image build, docker buildx build: !named -q -t= -f=dockerfile --file=dockerfile --no-cache,pull,quiet,load --progress=plain|auto|tty|rawjson --tag,target,platform,label= .|./
@kubectl: -n= --namespace= -A --all-namespaces
kubectl: @kubectl --request-timeout=number run
kubectl logs: @kubectl --ignore-errors --max-log-requests,pod-running-timeout= -fp -lc= --follow,previous,all-containers,timestamps,prefix --selector,container,tail,since,since-time,limit-bytes= any*
kubectl describe: @kubectl -l= --selector,chunk-size= --show-events?true|false resource*
kubectl top pod, kubectl top pods, kubectl top po: @kubectl -l= --containers,sum,no-headers --selector,field-selector,sort-by= any*
kubectl top node, kubectl top nodes, kubectl top no: -l= --no-headers,show-capacity --selector,sort-by= any*
kubectl explain: @kubectl --recursive --api-version= any*
kubectl api-resources: @kubectl -o=output --output=output --cached,no-headers --namespaced?true|false --api-group,verbs,sort-by=
kubectl events: @kubectl -w -o=output --output=output --watch,no-headers --for,types= any*
kubectl rollout status, kubectl rollout history: @kubectl -w -l= -o=output --output=output --watch?true|false --timeout,revision,selector=
  any*
kubectl auth can-i: @kubectl -q --list,quiet,no-headers --subresource= any*
kubectl api-versions, kubectl version: @kubectl --client?true|false -o=output --output=output
kubectl cluster-info: @kubectl
kubectl get: @kubectl -w
  -lL= -R --show-kind,show-managed-fields,watch-only,output-watch-events,server-print --watch?true|false --chunk-size,subresource= --watch,show-labels,no-headers,recursive,ignore-not-found --selector,field-selector,sort-by,label-columns= -o=output --output=output resource*
kubectl config view, kubectl config current-context, kubectl config get-contexts, kubectl config get-clusters: @kubectl --minify -o=output --output=output any*
curl: !named -sSfLIivk46gZ -X=GET|HEAD|OPTIONS -HAe=text -m=number -w=text -o=/dev/null|- -r=text
  --silent,show-error,fail,location,head,include,verbose,compressed,http1.1,http2,ipv4,ipv6,insecure --request=GET|HEAD|OPTIONS --header,user-agent,referer,write-out=text
  --max-time,connect-timeout,retry,retry-delay,max-redirs=number --output=/dev/null|- http*
gh api: -i -X=GET|HEAD -q=jq -t= --include,paginate,slurp,silent --jq=jq --template,cache= endpoint
terraform plan, tofu plan: !named !whole -no-color,detailed-exitcode,compact-warnings,destroy,refresh-only -input,lock,refresh?true|false -target,parallelism,lock-timeout?
terraform show, terraform output, terraform state list, terraform state show: !named !whole -no-color,json any
terraform validate, terraform providers, terraform version, terraform workspace list, terraform workspace show, terraform graph, tofu validate: !named !whole -no-color,json
terraform fmt, tofu fmt: !named !whole -check,diff,recursive,no-color -list,write?true|false below*
terraform init, tofu init: !named !whole -no-color,upgrade -input,backend?true|false
helm list, helm status, helm history, helm version, helm get values: -aAq -no= --namespace,output=target --all,all-namespaces,short any*
helm template, helm lint: -n= --namespace=target --strict below*
brew list, brew info, brew search, brew deps, brew outdated, brew --version: -qv1 --json,versions,formula,cask package*
@gh: -c -BHLSalsjtbe= -q=jq --jq=jq -R=github --repo=github --comments,log,log-failed,verbose,exit-status,name-only,patch,watch,required,draft,archived,source,fork,no-archived,yaml
  --limit,state,label,author,assignee,search,base,json,job,template,event,status,workflow,branch,commit,user,created,milestone,head,app,mention,order,sort=
  --language,owner,color,interval,attempt= github*
gh pr list, gh pr view, gh pr status, gh pr diff, gh pr checks, gh issue list, gh issue view, gh run view, gh repo view, gh release list, gh release view, gh workflow
  list, gh workflow view, gh label list, gh repo list, gh search issues, gh search prs, gh search code, gh search repos, gh cache list, gh run watch: @gh
gh run list: -w= @gh
gh auth status: -a -h= --active --hostname=
`
