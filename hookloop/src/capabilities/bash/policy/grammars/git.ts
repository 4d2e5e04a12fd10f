/**
 * Git. Settings of a repository that run programs are found before a command runs. No option here overrides that, enters submodules,
 * writes a file of its own, or lets a setting choose a program.
 */
export const git = `
git: !first -P -c=setting --no-pager,no-optional-locks,literal-pathspecs,version run
@diff: -pusRawbzWD -MBCUX? -lSGI= --patch,no-patch,raw,patch-with-stat,numstat,shortstat,cumulative,check,summary,name-only,name-status,compact-summary,binary,full-index
  --function-context,no-prefix,find-copies-harder,no-renames,rename-empty,follow,minimal,patience,histogram,text,exit-code,quiet,no-ext-diff,no-textconv
  --ignore-all-space,ignore-space-change,ignore-space-at-eol,ignore-cr-at-eol,ignore-blank-lines,indent-heuristic,pickaxe-all,pickaxe-regex,no-color,irreversible-delete,patch-with-raw,no-function-context
  --stat-width,stat-name-width,stat-count,ws-error-highlight,src-prefix,dst-prefix,line-prefix,inter-hunk-context,diff-algorithm,word-diff-regex,diff-filter=
  --find-object,ignore-matching-lines,anchored,stat-graph-width,color-moved-ws,output-indicator-new,output-indicator-old,output-indicator-context,rotate-to,skip-to= --unified,stat,dirstat,color,abbrev,word-diff,color-words,color-moved,relative,find-renames,find-copies,break-rewrites?
  --submodule=short| --ignore-submodules?all|
@revisions: -# -giEFP -n= --max-count,skip,since,until,after,before,author,committer,grep,exclude,min-parents,max-parents,max-age,min-age,glob=
  --branches,tags,remotes,no-walk? --all,merges,no-merges,first-parent,reverse,left-right,cherry,cherry-mark,cherry-pick,boundary,not,invert-grep,all-match
  --regexp-ignore-case,extended-regexp,fixed-strings,perl-regexp,date-order,author-date-order,topo-order,full-history,simplify-merges,simplify-by-decoration
  --ancestry-path,left-only,right-only,walk-reflogs,merge,children,parents,graph,oneline,abbrev-commit,no-abbrev-commit
  --show-pulls,dense,sparse,in-commit-order,unpacked,reflog,bisect,basic-regexp,no-min-parents,no-max-parents,ignore-missing,single-worktree,simplify-by-decoration
  --grep-reflog,since-as-filter= --date= --format,pretty?format
git log, git show, git whatchanged: @diff @revisions -cmq -L= --decorate? --encoding=
  --diff-merges=off|none|on|m|first-parent|1|combined|c|dense-combined|cc|separate --notes?
  --no-decorate,no-diff-merges,source,cc,show-notes,no-notes,full-diff,relative-date,use-mailmap,mailmap --clear-decorations,no-mailmap,log-size,remove-empty,no-expand-tabs
  --decorate-refs,decorate-refs-exclude= any*
git rev-list: @revisions --count,objects,objects-edge,timestamp,header,quiet,no-commit-header,disk-usage any*
git diff: @diff --cached,staged,cc,combined-all-paths,ours,theirs,base,no-index any*
git diff-tree, git diff-index, git diff-files: @diff -rmct --cached,cc,root,no-commit-id,always,merge-base any*
git range-diff: @diff --no-dual-color,left-only,right-only --creation-factor= any*
git stash show: @diff -u --include-untracked,only-untracked any*
git cherry: -v --verbose --abbrev? any*
git show-ref: -dqs --tags,heads,verify,head,dereference,quiet --hash,abbrev? any*
git cat-file: -etsp --allow-unknown-type,use-mailmap,batch-all-objects,buffer,unordered --batch,batch-check? any*
git ls-tree: -drtzl --long,name-only,name-status,object-only,full-name,full-tree --format= --abbrev? any*
git symbolic-ref: -q --quiet,short any
git count-objects: -vH --verbose,human-readable
git check-attr: -az --all,cached any*
git show-branch: -ar --all,remotes,list,current,topo-order,independent,merge-base,no-name,sha1-name any*
git fsck: --full,strict,no-dangling,no-reflogs,connectivity-only,unreachable,dangling,verbose,name-objects any*
git version: --build-options
git status: -sbvz -u? -M? --short,branch,verbose,show-stash,long,null,ahead-behind,no-ahead-behind,no-renames,renames
  --porcelain,untracked-files,ignored,column,find-renames? --ignore-submodules?all| any*
git blame, git annotate: -bceflnpstw -MC? -LS= --root,show-stats,show-name,show-number,porcelain,line-porcelain,show-email,incremental,color-lines,color-by-age
  --minimal,score-debug,progress --ignore-rev,ignore-revs-file,since,date= --abbrev? any*
git shortlog: @revisions -cesn -w? --numbered,summary,email,committer --group=format any*
git ls-files: -cdikmostuvz -xX= --format= --sparse,debug,resolve-undo,empty-directory --cached,deleted,modified,others,ignored,stage,killed,directory,eol,unmerged,exclude-standard,full-name,error-unmatch,deduplicate
  --exclude,exclude-from,with-tree= --abbrev? any*
git rev-parse: -q --verify,quiet,git-dir,show-toplevel,show-prefix,show-cdup,is-inside-work-tree,is-inside-git-dir,is-bare-repository,absolute-git-dir,git-common-dir,all
  --symbolic,symbolic-full-name,revs-only,no-revs,show-superproject-working-tree,is-shallow-repository --short,abbrev-ref,branches,tags,remotes?
  --flags,no-flags,not --path-format=absolute|relative --git-path,default,since,until,exclude,glob,disambiguate= any*
git describe, git name-rev: --debug,contains,all,tags,long,first-parent,exact-match,always,name-only,undefined --abbrev,dirty,broken? --candidates,match,exclude,refs= any*
git for-each-ref: --color? --sort=format --count,points-at,contains,no-contains,merged,no-merged= --format=format --ignore-case any*
git merge-base: -a --all,octopus,independent,is-ancestor,fork-point any*
git check-ignore: -qvnz --quiet,verbose,non-matching,no-index,stdin any*
git grep: -# -aiIwvhHEGFPnlLozcpWqrz -e=all -fmABC= --cached,untracked,no-recursive,invert-match,ignore-case,word-regexp,text,extended-regexp,basic-regexp,fixed-strings
  --perl-regexp,line-number,column,full-name,files-with-matches,name-only,files-without-match,only-matching,count,break,heading,show-function,function-context,and,or,not,quiet
  --all-match,exclude-standard --color? --max-depth,context,before-context,after-context,max-count,threads= any*
git reflog: @diff @revisions
git reflog show, git stash list: @diff @revisions any*
git remote: -v --verbose
git remote show, git remote get-url: -n --push,all remote*
git config: --global,local,system,worktree,show-origin,show-scope,bool,int,null,includes --type,default= key
git config --get, git config --get-all, git config --get-regexp, git config --list, git config -l, git config get, git config list: -lz
  --global,local,system,worktree,show-origin,show-scope,name-only,null,bool,int,list any*
git branch: !named -vqarlit --verbose,quiet,all,remotes,list,show-current,ignore-case,no-color,no-abbrev,create-reflog,no-track --color,column,abbrev,track?
  --contains,no-contains,merged,no-merged? --points-at= --sort=format --format=format any*
git tag: !named -lai -n? -m=all -F= --list,annotate,ignore-case --column,color? --contains,no-contains,merged,no-merged? --message,file,points-at= --sort=format --format=format any*
git worktree list, git submodule status, git submodule summary, git notes list, git notes show, git bundle verify, git bundle list-heads, git bisect log: -vz
  --porcelain,verbose,cached,recursive,quiet any*
git ls-remote: -htq --heads,tags,refs,quiet,symref,exit-code --sort= remote ref*
git add: !named -nvfuNA --refresh,renormalize,no-ignore-removal --dry-run,verbose,force,update,intent-to-add,all,no-all,ignore-errors,sparse --chmod=+x|-x any*
git commit: !named -aqvsoi -m=all -FC= -u? --all,quiet,verbose,signoff,amend,no-edit,allow-empty,allow-empty-message,reset-author,dry-run,short,branch,long,only,include,status
  --message=all --file,author,date,reuse-message,fixup,squash,cleanup,trailer= --no-gpg-sign,no-signoff,no-status,null,ahead-behind --untracked-files? --porcelain any*
git checkout: !named !links -qfmldt -bB= --quiet,force,detach,ours,theirs,guess,no-guess,progress,no-progress,no-track,merge,overlay,no-overlay,overwrite-ignore,ignore-skip-worktree-bits --orphan,conflict= --track? any*
git switch: !named !links -qfdmt -cC= --merge,progress,no-progress --quiet,force,detach,discard-changes,guess,no-guess,no-track --create,force-create,orphan,conflict= --track? any*
git restore: !named !links -qSWm -s= --overlay,no-overlay,progress,no-progress,merge --conflict= --quiet,staged,worktree,ours,theirs,ignore-unmerged --source= any*
git reset: !named !links -qN --quiet,mixed,soft,hard,merge,keep,intent-to-add any*
git rm: !named -fnrq --force,dry-run,cached,ignore-unmatch,quiet any*
git mv: !named !links !into -fnkv --force,dry-run,verbose work*
git init: !named -q -b= --quiet,bare --initial-branch= below
@stash: -ukaqS -m=all --include-untracked,keep-index,no-keep-index,all,quiet,staged --message=
git stash: !named !links @stash
git stash push, git stash save: !named !links @stash any*
git stash pop, git stash apply, git stash drop: !named !links -q --index,quiet any*
@strategy: -s=ort|recursive|resolve|octopus|ours|subtree --strategy=ort|recursive|resolve|octopus|ours|subtree
git apply: !named !links -v3RN -pC= --check,stat,numstat,summary,index,cached,3way,reverse,verbose,quiet,reject,recount,ignore-whitespace,ignore-space-change
  --unidiff-zero,allow-empty,intent-to-add --whitespace=nowarn|warn|fix|error|error-all --exclude,include= below*
git clean: !named -nqdxX -e= --dry-run,quiet --exclude= any*
git merge, git cherry-pick, git revert: !named !links -nqvx -mX=
  --no-commit,no-edit,no-ff,ff-only,ff,squash,abort,continue,quit,skip,stat,no-stat,quiet,verbose,signoff,allow-empty --progress,no-progress,autostash,no-autostash,allow-unrelated-histories,no-log,no-signoff,no-gpg-sign,commit --message,mainline,strategy-option,into-name= any*
git rebase: !named !links @strategy -qvfm -X= --empty=drop|keep --rebase-merges? --onto,strategy-option= --no-gpg-sign,fork-point,no-fork-point,apply,merge,update-refs
  --signoff,ignore-whitespace,force-rebase,no-ff,stat,show-current-patch,committer-date-is-author-date,reapply-cherry-picks --abort,continue,skip,quit,quiet,verbose,autostash,no-autostash,keep-base,root,no-stat any*
git fetch: !named -apqtvnfk46P -j=number --append,atomic,keep,ipv4,ipv6,refetch,update-shallow,no-auto-maintenance,no-auto-gc,show-forced-updates
  --jobs=number --refmap,shallow-exclude,filter= --all,prune,prune-tags,tags,no-tags,quiet,verbose,dry-run,force,unshallow,progress,no-recurse-submodules --depth,deepen,shallow-since= remote ref*
git pull: !named !links @strategy -qvft46n -X= -r?true|false|merges --rebase?true|false|merges --strategy-option= --squash,no-squash,commit,no-commit,stat,no-stat,force,ipv4,ipv6,no-autostash
  --allow-unrelated-histories,no-gpg-sign,unshallow,dry-run --quiet,verbose,no-rebase,ff-only,no-ff,ff,prune,tags,no-tags,autostash,all,no-edit,no-recurse-submodules,progress --depth= remote ref*
git push: !named -qvundf --quiet,verbose,all,tags,set-upstream,dry-run,porcelain,force,force-with-lease,follow-tags,delete,atomic,progress,prune remote ref*
git clone: !named !links -qvn -bo= --quiet,verbose,no-checkout,single-branch,no-single-branch,no-tags,bare,mirror,progress --branch,origin,depth,shallow-since,filter= remote work
`
