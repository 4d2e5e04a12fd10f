/** Programs that run other commands, builtins that evaluate text, and shells. */
export const wrappers = `
timeout: !first !plain -v -ks= --foreground,preserve-status,verbose --kill-after,signal= number command
nice: !first !plain -# -n=number --adjustment=number command
nohup: !first !plain command
ionice: !first !plain -t -cn=number command
stdbuf: !first !plain -ioe= --input,output,error= command
time: !first !plain -pv command
command: !first !plain -p command
env: !named !first !plain !assigns -0 -S=shell --split-string=shell command
cross-env: !first !plain !assigns command
exec: !free !first -cl -a= command
builtin: !free !first command
xargs: !first !appends !judged -0rtxo -ELPns=number -I={}|%|@|FILE -ad= --null,no-run-if-empty,verbose,exit --max-args,max-procs,max-chars=number --max-lines? --replace?{}|% --delimiter,arg-file=
  command
sudo, doas: !first !assigns -AbBEeHiKklnPSsVvL -CDghpRrtTuU= --user,group,host,prompt,chdir,chroot,close-from,command-timeout= command
pkexec: !first --user= command
su, runuser: -lpmf -ugGsw= -c=shell --command=shell run*
sg: any shell
setsid, chronic, ifne, dumb-init, proxychains, proxychains4: !first -acdefinpqvw command
chrt, taskset, logsave, setlock: !first -abcdefimnoprstuvxNX -TPD= any command
choom, dtach, cgexec, sandbox-exec: !first -npfDgAac= command
ssh-agent, sshpass, systemd-cat, aa-exec: !first -csDkehvVdi -atEOPpfn= command
chpst, softlimit, tini, multitime: !first -012vPgswlq -uUbe/nmdofpcrtaiIs= command
strace, ltrace, unshare, nsenter: !first -cCdfFhiknqrvVwxyYzZTUmu -abeEIoOpPsSXAlt= command
xvfb-run, caffeinate, dotenv: !first -alisumd -efnpswtv= command
flock: !first -sxeunoFv -wE= -c=shell --command=shell any command
watch, entr: !first -abcdegprtxwz -nq= shell
nodemon: -x=shell --exec=shell run*
ssh: !first -46AaCfGgKkMNnqsTtVvXxYy -BbcDEeFIiJLlmOopQRSWw= any shell
script: -aefqt -EIoOTBm= -c=shell --command=shell run*
screen: !first -aADdmRrxUwi -cehpStT= command
tmux: any shell
nix-shell: --run,command=shell run*
pnpm exec: !first -r -F=project --filter=project --recursive,silent -c=shell --shell-mode=shell command
npx, npm exec, npm x: !first -yq -pw= --yes --package= -c=shell --call=shell command
numactl, prlimit, linux32, linux64, i386, i686, x86_64, uname26, systemd-inhibit, catchsegv, eatmydata, heaptrack, daemonize, trickle, proot, xcrun, setpriv,
  capsh, bwrap, firejail, fakeroot, torify, torsocks, valgrind, gdb, systemd-run, dbus-run-session, unbuffer, rlwrap, cpulimit, busybox, toybox, ld.so, pnpx, bunx, uvx,
  pnpm dlx, yarn dlx, bun x, uv run, poetry run, pipenv run, hatch run, pipx run, opam exec, stack exec, cabal exec, lerna exec, nx exec, op run, doppler run, infisical
  run, nvm exec, fnm exec, mise x, rvm do, bundle exec, rbenv exec, pyenv exec, mise exec, asdf exec, volta run, git bisect run, conda run: !first command
cmake -E env: !first !assigns command
setarch, runcon, envdir, setuidgid, faketime, gosu, su-exec, chroot, perf, aws-vault exec, direnv exec, docker run, docker exec, docker container run, docker container
  exec, docker compose run, docker compose exec, nerdctl run, nerdctl exec, oc exec, podman run, podman exec, kubectl exec, ip netns exec: !first any command
hyperfine, concurrently, pee, sem, parallel, yarn exec, git submodule foreach: !first shell
eval: !free !raw shell
trap: !free shell
alias: !free alias*
mapfile, readarray, compgen, complete: !free -C=shell run*
source, .: !named !raw run
let, declare, typeset, local, readonly, enable, bind, unalias, hash, compopt, history, fc, getopts, disown, suspend, logout, shift, caller, coproc: !free !raw run*
sh, bash, dash, ash, zsh, ksh, mksh, rbash, yash, fish, csh, tcsh, pwsh, powershell: !first -c=shell --command=shell run any*
`
