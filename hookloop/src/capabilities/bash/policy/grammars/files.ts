/** Programs that read, search and change files. They do the same in every folder. */
export const files = `
ls: !pure !names -aAbBcCdDfgGhHiklLmnNopqQrRsStuUvxXZ1 -F? -ITw= --block-size,format,hide,ignore,indicator-style,quoting-style,sort,time,time-style,width=
  --all,almost-all,directory,full-time,group-directories-first,no-group,human-readable,si,inode,numeric-uid-gid,reverse,recursive,size --color,classify? any*
cat: !pure -AbeEnstTuv --show-all,number-nonblank,show-ends,number,squeeze-blank,show-tabs,show-nonprinting any*
head: !pure -# -qvz -cn= --bytes,lines= --quiet,silent,verbose,zero-terminated any*
tail: !pure -# -fFqvz -cns= --bytes,lines,pid,sleep-interval= --follow? --quiet,silent,retry,verbose,zero-terminated any*
wc: !pure -cmlLw --bytes,chars,lines,max-line-length,words --files0-from= any*
cut: !pure -bcdf= -nsz --bytes,characters,delimiter,fields,output-delimiter= --complement,only-delimited,zero-terminated any*
tr: !pure -cCdst --complement,delete,squeeze-repeats,truncate-set1 any*
fold: !pure -bs -w= --bytes,spaces --width= any*
paste: !pure -sz -d= --serial,zero-terminated --delimiters= any*
comm: !pure -123z --check-order,nocheck-order,total,zero-terminated --output-delimiter= any*
basename: !pure !names -az -s= --multiple,zero --suffix= any*
dirname: !pure !names -z --zero any*
realpath: !pure !names -emLPqsz --canonicalize-existing,canonicalize-missing,logical,no-symlinks,physical,quiet,strip,zero --relative-to,relative-base= any*
readlink: !pure !names -efmnqsvz --canonicalize,canonicalize-existing,canonicalize-missing,no-newline,quiet,zero any*
stat: !pure !names -Lft -c= --dereference,file-system,terse --format,printf= any*
du: !pure !names -0abcDhHklLmPsSx -BdtX= --all,null,apparent-size,bytes,total,human-readable,inodes,si,summarize,one-file-system,separate-dirs,dereference,count-links --time?
  --block-size,max-depth,threshold,exclude,exclude-from,time-style,files0-from= any*
df: !pure !names -ahHiklPT -Btx= --all,human-readable,si,inodes,local,total,print-type --block-size,type,exclude-type= --output? any*
whoami, tty, groups, logname: !pure
arch: --help
nproc: !pure --all --ignore=
uptime: !pure -ps --pretty,since
free: !pure -bkmghltvwL -sc= --bytes,kibi,mebi,gibi,human,si,lohi,total,wide,kilo,mega,giga --seconds,count=
lscpu: !pure -aJ --all,json
pwd: !pure -LP
hostname: -fsdIiA --fqdn,short,domain,ip-address,all-ip-addresses
id: !pure -agGnruz --group,groups,name,real,user,zero any*
uname: !pure -asnrvmpio --all,kernel-name,nodename,kernel-release,kernel-version,machine,processor,operating-system
md5sum, sha1sum, sha256sum, sha512sum, b2sum: !pure -bctwz --binary,check,ignore-missing,quiet,status,strict,tag,text,warn,zero any*
sleep: !pure !names !raw any*
true, false, :, exit, return, break, continue: !free !pure !names !raw any*
set: !free !raw shellopt*
export: !free !raw exported*
shopt: !free -suq globstar|nullglob*
unset: !free NODE_OPTIONS|PYTHONPATH|NODE_ENV|CI|DEBUG*
umask: !free -S
jobs: !free -lnprs
ulimit: !free -SHacdfnstuv
cmp: !pure -bls -in= --print-bytes,verbose,quiet,silent --ignore-initial,bytes= any*
od: !pure -abcdfilosvx -AjNt= -Sw? --output-duplicates --address-radix,skip-bytes,read-bytes,format,endian= --strings,width? any*
base64, base32: -di -w= --decode,ignore-garbage --wrap= any*
grep, egrep, fgrep: !pure -# -aEFGPiwxzsvVbnHhoqIrRLlcTZU -e=all -fmdDBAC= --color,colour?
  --extended-regexp,fixed-strings,basic-regexp,perl-regexp,ignore-case,no-ignore-case,word-regexp,line-regexp,null-data,no-messages,invert-match
  --byte-offset,line-number,line-buffered,with-filename,no-filename,only-matching,quiet,silent,text,recursive,dereference-recursive,count,null
  --files-without-match,files-with-matches,no-group-separator
  --regexp,file,max-count,label,binary-files,directories,include,exclude,exclude-from,exclude-dir,before-context,after-context,context= any*
which: !pure !names -a any*
type: !pure !names -afptP any*
command -v, command -V: !pure any*
column: !pure -texdJL -sNocnOREHTWl= --table,json,fillrows,table-noheadings,keep-empty-lines --separator,output-separator,table-columns,output-width,table-name= any*
echo: !pure !names !raw any*
rev, factor: !pure any*
expr: !pure !raw any*
seq: !pure -# -w -fs= --equal-width --format,separator= any*
tac: !pure -br -s= --before,regex --separator= any*
nl: !pure -p -bdfhilnsvw= --no-renumber --body-numbering,section-delimiter,footer-numbering,header-numbering,line-increment,join-blank-lines,number-format
  --number-separator,starting-line-number,number-width= any*
join: !pure -iz -aejotv12= --ignore-case,check-order,nocheck-order,header,zero-terminated any*
fmt: !pure -# -cstu -pwg= --crown-margin,split-only,tagged-paragraph,uniform-spacing --prefix,width,goal= any*
expand, unexpand: !pure -ai -t= --tabs= any*
strings: !pure -# -adfo -nte= --all,data,print-file-name --bytes,radix,encoding= any*
cksum: !pure -czw -al= --check,untagged,tag,zero,ignore-missing,quiet,status,strict,warn --algorithm,length= any*
hexdump: !pure -bcCdoxv -ens= --canonical,no-squeezing --length,skip,format= any*
numfmt: !pure -z -d= --debug,grouping,zero-terminated --delimiter,field,format,from,from-unit,invalid,padding,round,suffix,to,to-unit= --header? any*
shuf: -erz -in= --echo,repeat,zero-terminated --input-range,head-count= any*
iconv: -lcs -ft= --list,silent --from-code,to-code= any*
zcat, gunzip -c, gzip -l, gzip -t, gzip -cd, gzip -dc: -cdflqtv any*
zgrep, zegrep, zfgrep: -# -aEFGPiwxnHhoqLlcv -emABC= any*
unzip -l, unzip -p, unzip -t, unzip -v, zipinfo, unzip -Z, unzip -Z1: any*
bc: -lqsw
cal, ncal: -13my -ABdm= any*
lsof: -nPtlRUabX -i?port -pucdgFs= port*
ss: -nraloempisbtuwx460H --numeric,resolve,all,listening,processes,summary,tcp,udp,unix,no-header
netstat: -rignsveplatuxWon46 --route,interfaces,statistics,numeric,programs,listening,all,tcp,udp any*
pgrep: -lavwcfinox -dgGPstuUr= --list-name,list-full,inverse,count,full,ignore-case,newest,oldest,exact --delimiter,pgroup,group,parent,session,terminal,euid,uid= any*
readelf: -aAdegHhlnrsStuVWw --all,file-header,headers,sections,segments,symbols,dynamic,notes,wide text*
nm: -aACDgnoprSu --demangle,dynamic,extern-only,undefined-only,print-size,size-sort text*
printf: !first !names printf any*
test, [: !free !raw !names test*
wait: !free any*
kill: !named !raw any*
ps: -# -AadefFHjLlTwycm -CGgpqstuU= -o=columns --format=columns --pid,ppid,sort,user,group,tty,sid,cols= --forest,headers,no-headers,deselect ps*
date: -uR -I? -dr= --iso-8601? --date,reference,rfc-3339= --utc,universal,rfc-email,debug,resolution plus
sort: -bdfgiMhnRrVmsuzcC -kt= -S=number --sort,key,field-separator,batch-size,parallel,files0-from,random-source= --check? --buffer-size=number
  --ignore-leading-blanks,dictionary-order,ignore-case,general-numeric-sort,month-sort,human-numeric-sort,numeric-sort,random-sort,reverse,version-sort
  --debug,merge,stable,unique,zero-terminated any*
uniq: -cdDiuz -fsw=number --count,repeated,ignore-case,unique,zero-terminated --all-repeated,group? --skip-fields,skip-chars,check-chars=number any
tee: -aip --append,ignore-interrupts data*
diff: -qsenyptTrNiEZbwBad -cu -CUWFxXSI= --context,unified,color? --label,width,show-function-line,tabsize,exclude,exclude-from,ignore-matching-lines=
  --brief,report-identical-files,side-by-side,left-column,suppress-common-lines,show-c-function,recursive,no-dereference,new-file,ignore-case
  --ignore-trailing-space,ignore-space-change,ignore-all-space,ignore-blank-lines,text,strip-trailing-cr,minimal,normal,ed,rcs,expand-tabs,initial-tab
  --suppress-blank-empty,unidirectional-new-file,ignore-file-name-case,no-ignore-file-name-case,speed-large-files,ignore-tab-expansion any*
file: -bhikLNprs0 -eFm= --brief,mime,mime-type,mime-encoding,dereference,no-dereference,keep-going,raw any*
tree: -adfpsughDFvtcrCnAixJXQNqlUS -# -L=count -PI=next --dirsfirst,filesfirst,noreport,du,si,gitignore,prune,matchdirs,ignore-case,inodes,device,metafirst
  --charset,filelimit,sort,timefmt= any*
xxd: !whole -a,b,C,E,e,i,p,ps,u,v,d -l,s,c,g,o=number any
man: -akfw --all,apropos,whatis,where,path,location package*
tar: !links -tvzjJ -f=local --list,verbose,gzip,bzip2,xz --file=local tar local*
sed: -nErsuz -e=sed --quiet,silent,regexp-extended,separate,unbuffered,null-data,posix,debug,sandbox --expression=sed sed any*
awk, gawk, mawk, nawk: !first -Fv= awk path*
yq: -rPCMNnyeSRj -I=number -op=json|yaml|yml|xml|props|csv|tsv|j|y --output-format,input-format=json|yaml|xml|props|csv|tsv|toml
  --prettyPrint,no-doc,null-input,raw-output,yaml-output,yaml-roundtrip,exit-status,colors,no-colors,compact-output,sort-keys --indent=number yq*
jq: -cnerRsSCMja --compact-output,null-input,exit-status,raw-output,raw-input,slurp,sort-keys,color-output,monochrome-output,join-output,ascii-output,tab
  --stream,seq,args,jsonargs --arg,argjson==all --slurpfile,rawfile== --indent=number jq file*
rg: -# -aFiIlLnNoPqsSuUvwxcHhpb0. -ABCMdefgjmrtTE= --files,hidden,no-ignore,line-number,ignore-case,smart-case,fixed-strings,word-regexp,count,multiline,multiline-dotall
  --no-ignore-vcs,no-ignore-parent,no-ignore-dot,no-ignore-global,no-filename,with-filename,byte-offset,column,no-column,no-line-number,passthru,count-matches,type-list
  --follow,one-file-system,unrestricted,binary,text,crlf,null-data,no-config,pretty,quiet,line-regexp,include-zero,glob-case-insensitive,no-unicode,debug,no-hidden
  --line-buffered,block-buffered,mmap,no-mmap,max-columns-preview,no-binary,auto-hybrid-regex,no-multiline,sort-files
  --max-columns,max-filesize,type-add,type-clear,engine,encoding,context-separator,field-match-separator,field-context-separator,path-separator,ignore-file,colors=
  --files-with-matches,files-without-match,no-heading,heading,json,only-matching,stats,vimgrep,invert-match,pcre2,trim,null,no-messages,case-sensitive
  --glob,iglob,type,type-not,max-count,max-depth,context,after-context,before-context,regexp,replace,sort,sortr,threads= --color=auto|always|never any*
fd, fdfind: -HIusigFaLp0l1q -dtEecjSo= --hidden,no-ignore,case-sensitive,ignore-case,glob,regex,fixed-strings,absolute-path,follow,full-path,print0,list-details,quiet
  --no-ignore-vcs,no-ignore-parent,no-hidden,no-follow,relative-path,unrestricted,one-file-system,show-errors,prune --strip-cwd-prefix?
  --max-depth,min-depth,exact-depth,type,extension,exclude,size,changed-within,changed-before,newer,older,max-results,owner,and,threads,path-separator,format,color= -xX=command --exec,exec-batch=command any*
find: !judged !whole -H,L,P,d,a,and,o,or,not,true,false,daystart,depth,empty,executable,readable,writable,follow,ls,mount,xdev,noleaf,nowarn,warn,nouser
  -nogroup,print,print0,prune,quit -maxdepth,mindepth,uid,gid,links,inum=number
  -amin,anewer,atime,cmin,cnewer,ctime,mmin,mtime,newer,newermt,newerct,newerat,newermm,used,fstype,group,user,name,iname,lname,ilname,path,ipath=all
  -wholename,iwholename,regex,iregex,regextype,perm,size,type,xtype,samefile,printf=all -exec=inner -execdir,ok,okdir=command any*
rm: !named -fiIrRdv --force,recursive,dir,verbose,one-file-system --interactive? any*
mkdir: !named -pv -m= --parents,verbose --mode= folder*
rmdir: !named -pv --ignore-fail-on-non-empty,parents,verbose folder*
printenv: !named -0 --null any*
touch: !named -acfhm -drt= --no-create,no-dereference --date,reference,time= work*
cp: !named !links !into -abdfHiLlnPpRruvx --archive,force,no-clobber,recursive,verbose --backup,preserve? work*
mv: !named !links !into -bfinuv --force,interactive,no-clobber,verbose --backup? work*
ln: !named !links !into -bdfFiLnPrsv --force,interactive,no-dereference,relative,symbolic,verbose work*
chmod: !named -cfvR --changes,quiet,silent,verbose,recursive --reference= any*
`
