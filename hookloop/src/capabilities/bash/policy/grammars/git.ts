/**
 * Git. Settings of a repository that run programs are found before a command runs. No option here overrides that, enters submodules,
 * writes a file of its own, or lets a setting choose a program.
 */
export const git = `
git: !first -P --no-pager,no-optional-locks,version run
@diff: -pusRawbzWD -MBCU? -lSGI= --patch,no-patch,raw,patch-with-stat,numstat,shortstat,cumulative,check,summary,name-only,name-status,compact-summary,binary,full-index
  --function-context,no-prefix,find-copies-harder,no-renames,rename-empty,follow,minimal,patience,histogram,text,exit-code,quiet,no-ext-diff,no-textconv
  --ignore-all-space,ignore-space-change,ignore-space-at-eol,ignore-cr-at-eol,ignore-blank-lines,indent-heuristic,pickaxe-all,pickaxe-regex,no-color,irreversible-delete
  --stat-width,stat-name-width,stat-count,ws-error-highlight,src-prefix,dst-prefix,line-prefix,inter-hunk-context,diff-algorithm,word-diff-regex,diff-filter=
  --find-object,ignore-matching-lines,anchored= --unified,stat,dirstat,color,abbrev,word-diff,color-words,color-moved,relative,find-renames,find-copies,break-rewrites?
  --submodule=short| --ignore-submodules?all|
@revisions: -# -giEFP -n= --max-count,skip,since,until,after,before,author,committer,grep,exclude,min-parents,max-parents,max-age,min-age,glob=
  --branches,tags,remotes,no-walk? --all,merges,no-merges,first-parent,reverse,left-right,cherry,cherry-mark,cherry-pick,boundary,not,invert-grep,all-match
  --regexp-ignore-case,extended-regexp,fixed-strings,perl-regexp,date-order,author-date-order,topo-order,full-history,simplify-merges,simplify-by-decoration
  --ancestry-path,left-only,right-only,walk-reflogs,merge,children,parents,graph,oneline,abbrev-commit,no-abbrev-commit --date= --format,pretty?format
git log, git show, git whatchanged: @diff @revisions -cmq -L= --decorate? --encoding=
  --no-decorate,source,cc,show-notes,no-notes,full-diff,relative-date,use-mailmap,mailmap --clear-decorations,no-mailmap,log-size,remove-empty,no-expand-tabs
  --decorate-refs,decorate-refs-exclude= any*
git rev-list: @revisions --count,objects,timestamp any*
git diff: @diff --cached,staged,cc,combined-all-paths,ours,theirs,base any*
git status: -sbvz -u? -M? --short,branch,verbose,show-stash,long,null,ahead-behind,no-ahead-behind,no-renames,renames
  --porcelain,untracked-files,ignored,column,find-renames? --ignore-submodules?all| any*
git blame, git annotate: -bceflnpstw -MC? -LS= --root,show-stats,show-name,show-number,porcelain,line-porcelain,show-email,incremental,color-lines,color-by-age
  --ignore-rev,ignore-revs-file,since,date= --abbrev? any*
git shortlog: @revisions -cesn --numbered,summary,email,committer --group= any*
git ls-files: -cdikmostuvz -xX= --cached,deleted,modified,others,ignored,stage,killed,directory,eol,unmerged,exclude-standard,full-name,error-unmatch,deduplicate
  --exclude,exclude-from,with-tree= --abbrev? any*
git rev-parse: -q --verify,quiet,git-dir,show-toplevel,show-prefix,show-cdup,is-inside-work-tree,is-inside-git-dir,is-bare-repository,absolute-git-dir,git-common-dir,all
  --symbolic,symbolic-full-name,revs-only,no-revs,show-superproject-working-tree,is-shallow-repository --short,abbrev-ref,branches,tags,remotes?
  --git-path,default,since,until= any*
git describe, git name-rev: --contains,all,tags,long,first-parent,exact-match,always,name-only,undefined --abbrev,dirty,broken? --candidates,match,exclude,refs= any*
git for-each-ref: --count,sort,points-at,contains,no-contains,merged,no-merged= --format=format --ignore-case any*
git merge-base: -a --all,octopus,independent,is-ancestor,fork-point any*
git check-ignore: -qvnz --quiet,verbose,non-matching,no-index,stdin any*
git grep: -# -aiIwvhHEGFPnlLozcpWqrz -e=all -fmABC= --cached,untracked,no-recursive,invert-match,ignore-case,word-regexp,text,extended-regexp,basic-regexp,fixed-strings
  --perl-regexp,line-number,column,full-name,files-with-matches,name-only,files-without-match,only-matching,count,break,heading,show-function,function-context,and,or,not,quiet
  --all-match,exclude-standard --color? --max-depth,context,before-context,after-context,max-count,threads= any*
git reflog: @diff @revisions
git reflog show, git stash list: @diff @revisions any*
git remote: -v --verbose
git remote show, git remote get-url: -n --push,all any*
git config --get, git config --get-all, git config --get-regexp, git config --list, git config -l, git config get, git config list: -lz
  --global,local,system,worktree,show-origin,show-scope,name-only,null,bool,int,list any*
git branch: -vqarlit --verbose,quiet,all,remotes,list,show-current,ignore-case,no-color,no-abbrev,create-reflog,no-track --color,column,abbrev,track?
  --contains,no-contains,merged,no-merged,points-at= --sort=all --format=format any*
git tag: -lai -n? -mF= --list,annotate,ignore-case --column,color? --message,file,contains,no-contains,merged,no-merged,points-at= --sort=all --format=format any*
git worktree list, git submodule status, git submodule summary, git notes list, git notes show, git bundle verify, git bundle list-heads, git bisect log: -vz
  --porcelain,verbose,cached,recursive,quiet any*
git ls-remote: -htq --heads,tags,refs,quiet,symref,exit-code --sort= remote*
git add: !named -nvfuNA --dry-run,verbose,force,update,intent-to-add,all,no-all,ignore-errors,sparse --chmod=+x|-x any*
git commit: !named -aqvsoi -mFC= -u? --all,quiet,verbose,signoff,amend,no-edit,allow-empty,allow-empty-message,reset-author,dry-run,short,branch,long,only,include,status
  --message,file,author,date,reuse-message,fixup,squash,cleanup,trailer= --porcelain any*
git checkout: !named -qfmldt -bB= --quiet,force,detach,ours,theirs,guess,no-guess,progress,no-progress,no-track --orphan,conflict= --track? any*
git switch: !named -qfdmt -cC= --quiet,force,detach,discard-changes,guess,no-guess,no-track --create,force-create,orphan,conflict= --track? any*
git restore: !named -qSWm -s= --quiet,staged,worktree,ours,theirs,ignore-unmerged --source= any*
git reset: !named -qN --quiet,mixed,soft,hard,merge,keep,intent-to-add any*
git rm: !named -fnrq --force,dry-run,cached,ignore-unmatch,quiet any*
git mv: !named -fnkv --force,dry-run,verbose any*
git init: !named -q -b= --quiet,bare --initial-branch= below
@stash: -ukaqS -m= --include-untracked,keep-index,no-keep-index,all,quiet,staged --message=
git stash: !named @stash
git stash push, git stash save: !named @stash any*
git stash pop, git stash apply, git stash drop: !named -q --index,quiet any*
git merge, git cherry-pick, git revert: !named -nqvx -mX=
  --no-commit,no-edit,no-ff,ff-only,ff,squash,abort,continue,quit,skip,stat,no-stat,quiet,verbose,signoff,allow-empty --message,mainline,strategy-option= any*
git rebase: !named -qvf -X= --onto= --abort,continue,skip,quit,quiet,verbose,autostash,no-autostash,keep-base,root,no-stat any*
git fetch: !named -apqtvnf --all,prune,prune-tags,tags,no-tags,quiet,verbose,dry-run,force,unshallow,progress,no-recurse-submodules --depth,deepen,shallow-since= remote*
git pull: !named -qvr --quiet,verbose,rebase,no-rebase,ff-only,no-ff,ff,prune,tags,no-tags,autostash,all,no-edit,no-recurse-submodules,progress --depth= remote*
git push: !named -qvundf --quiet,verbose,all,tags,set-upstream,dry-run,porcelain,force,force-with-lease,follow-tags,delete,atomic,progress,prune remote*
git clone: !named -qvn -bo= --quiet,verbose,no-checkout,single-branch,no-single-branch,no-tags,bare,mirror,progress --branch,origin,depth,shallow-since,filter= remote below
`
