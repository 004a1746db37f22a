# SPDX-License-Identifier: BSD-2-Clause
#
# The words that a shell offers behind `nonic`. zsh reads this file as well (nonic.zsh): nothing here is bash's alone.
# The options are those of `nonic COMMAND --help`; tests/install/run compares the two.

# The options of a command; of those that take a value, which values there are, or of which kind they are.
_nonic_options() {
    case "$1" in
    run) echo --nic=roce,efa --wire=auto,udp,shm --transport=rc,block,auto --device=interface --paths=number --capture=file \
        --fault=fault --strict --check --odd --map-memory=auto,now,never --map-queues --stats --help ;;
    repeat) echo --seed=number --seeds=word --until-failure --fails-if=word --jobs=number --until=word \
        --without=jitter,hold,ties --shrink --holds=word -o=directory --output=directory --memory --every-call --tick=number \
        --machine=roce,csrna --set=word --topology=file \
        --nic=roce,efa --wire=auto,udp,shm --transport=rc,block,auto --device=interface --paths=number \
        --capture=file --fault=fault --strict --check --odd --stats --help ;;
    replay) echo --gdb=word --help ;;
    at) echo -x --help ;;
    info) echo --json --nic=roce,efa --wire=auto,udp,shm --device=interface --paths=number --help ;;
    stat) echo --json --all --connections --hang --watch=number --help ;;
    top) echo -d=number --delay=number --once --json --help ;;
    report) echo -o=directory --output=directory --help ;;
    'lab list') echo --json ;;
    'lab show') echo --json ;;
    'lab run') echo --seed=number --repeat=number --set=parameter --sweep=parameter --topology=file --pattern=file \
        --traffic=file --judge --stats --json --csv --trace=file --pcap=file ;;
    'lab falsify') echo --quick --seed=number --json ;;
    'lab report') echo -o=directory --seed=number ;;
    'bench connections') echo --qps=number --wire=shm,udp --op=write,read --size=number --depth=number --ring=number \
        --peers=number --random --seconds=number --baseline --json --system-verbs --device=name --gid-index=number ;;
    'feroce board') echo --address=address --qps=2,4,8,16 --pmtu=256,512,1024,2048,4096 --buffer-bits=number \
        --stack=2026,2024 --cm-version=3,2 --class=number --timeout=number --timeout-cycles=number --clock=number \
        --time-scale=number --retry=number --rnr-retry=number --quirks=quirk --start=number --wait-open \
        --data=counter,zero --rate=number --open=address --pace=exact,fast --exact-ip --fault=fault --capture=file \
        --stats --once --polite ;;
    'feroce receive') echo --active --remote=address --streams=number --buf-size=number --num-buf=number --write-ring \
        --stack=2026,2024 --check=counter,feroce-rs,none --max-messages=number --dump=file --stats-csv=file \
        --pmtu=256,512,1024,2048,4096 --device=interface --gid-index=number --bind=address --cm-port=number \
        --cm-version=3,2 --system-verbs --gpu ;;
    'feroce ctl') echo --remote=address --qpn=number --length=number --count=number --rate=number --clock=number \
        --write --immediate --local-qpn=number --psn=number --rkey=number --base-address=number --local-ip=address \
        --bind=address --listening-port=number --cm-version=3,2 --force --dry-run ;;
    'hdl build') echo --simulator=verilator,icarus --top=word -I=directory -y=directory -G=word --filter --entity=word -o=file ;;
    'hdl compare') echo --frames ;;
    'hdl lab') echo --messages=number --bytes=number --write --loss=number --rate=number --period=number --period2=number \
        --ready=number --gap=number --seed=number --patience=number --cut-through --fault=accident \
        --set=word --capture=file --trace=file --trace-from=number --trace-for=number --strict --wire=word \
        --replay=file --for=number ;;
    'hdl live') echo --address=address --tap=word --port=number --hold=word --connect=file --pingpong=number --cm=number \
        --pmtu=number --period=number --period2=number --rate=number --ready=number --gap=number --seed=number --fault=fault \
        --cut-through --for=number --capture=file --trace=file --trace-from=number --trace-for=number --strict ;;
    'hdl replay') echo -o=file --compare=file --period=number --period2=number --rate=number \
        --linger=number --lookahead=number --ready=number --gap=number --cut-through --fault=accident \
        --seed=number --trace=file --trace-from=number --trace-for=number --strict ;;
    esac
}

_nonic_commands() {
    case "$1" in
    '') echo run repeat replay at info stat top report lab bench feroce hdl help --help --version ;;
    help) echo run repeat replay at info stat top report lab bench feroce hdl ;;
    lab) echo list show run falsify report --help ;;
    bench) echo connections --help ;;
    feroce) echo board receive ctl --help ;;
    hdl) echo build compare lab live replay --help ;;
    esac
}

# Experiments, and with `documents` those of a document together.
_nonic_experiments() {
    local names="$("$_nonic" lab list 2>/dev/null | sed -n 's,^\([a-z][a-z0-9]*/[^ ]*\) .*,\1,p')"
    echo $names
    [ "$1" != documents ] || printf '%s\n' $names | sed 's,/.*,,' | sort -u
}

# The parameters of the experiment that is named on the line.
_nonic_parameters() {
    local word
    for word in $1; do
        case "$word" in
        ?*/?*) "$_nonic" lab show "$word" --json 2>/dev/null |
            sed -n '/"parameters"/,/"claims"/s/^ *"name": "\(.*\)",*$/\1=/p' ;;
        esac
    done
}

# The values of a kind.
_nonic_values() {
    case "$1" in
    fault) echo drop= dup= reorder= corrupt= delay= seed= dir=tx dir=rx dir=both ;;
    accident) echo badfcs= truncate= reset= ;;
    quirk) echo none rtl rkey0 stale-error stall ack-order mr-rnr latch uncounted busy lost-strobe ;;
    interface) for one in /sys/class/net/*; do echo "${one##*/}"; done ;;
    parameter) _nonic_parameters "$2" ;;
    number | address | word) ;;
    *) echo "$1" | tr , ' ' ;;
    esac
}

# Offers those words that begin with what was typed; `before` stands before each of them. bash replaces no more than
# what stands behind the last `=` or `:`.
_nonic_offer() {
    local typed="$1" words="$2" before="$3" current="${COMP_WORDS[COMP_CWORD]}" word cut
    case "$current" in = | :) current= ;; esac
    cut=$((${#typed} - ${#current}))
    for word in $words; do
        word="$before$word"
        case "$word" in "$typed"*)
            COMPREPLY+=("${word:$cut}")
            case "$word" in *=) type compopt >/dev/null 2>&1 && compopt -o nospace 2>/dev/null ;; esac ;;
        esac
    done
}

_nonic_files() {
    COMPREPLY=($(compgen "$1" -- "$2"))
    type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
}

# A program and its words, as if `nonic run --` or `nonic repeat --` were not there.
_nonic_program() {
    local at=2
    while [ "${COMP_WORDS[at]}" != -- ]; do at=$((at + 1)); done
    at=$((at + 1))
    if type _command_offset >/dev/null 2>&1; then
        _command_offset $at
    elif [ "$COMP_CWORD" -le $at ]; then
        _nonic_files -c "$1"
    else
        _nonic_files -f "$1"
    fi
}

# A word that is no option.
_nonic_word() {
    local command="$1" typed="$2"
    case "$command" in
    run | repeat) _nonic_files -c "$typed" ;;
    replay) _nonic_files -d "$typed" ;;
    report) _nonic_files -f "$typed" ;;
    'lab list' | 'lab falsify' | 'lab report') _nonic_offer "$typed" "$(_nonic_experiments documents)" ;;
    'lab show' | 'lab run') _nonic_offer "$typed" "$(_nonic_experiments)" ;;
    'feroce ctl') _nonic_offer "$typed" 'tx-meta open close modify' ;;
    'hdl build' | 'hdl compare' | 'hdl lab' | 'hdl live' | 'hdl replay') _nonic_files -f "$typed" ;;
    *) _nonic_offer "$typed" "$(_nonic_commands "$command")" ;;
    esac
}

# An option's value; `before` is `--option=` if the two are one word.
_nonic_value() {
    local kind="$1" typed="$2" before="$3" line="$4" value="${2#"$3"}"
    case "$kind" in
    file) _nonic_files -f "$value" ;;
    directory) _nonic_files -d "$value" ;;
    fault | accident | quirk | interface)
        # A list: what is complete already stands before the next one.
        case "$value" in *,*) before="$before${value%,*}," ;; esac
        _nonic_offer "$typed" "$(_nonic_values "$kind")" "$before" ;;
    *) _nonic_offer "$typed" "$(_nonic_values "$kind" "$line")" "$before" ;;
    esac
}

_nonic_complete() {
    local line="${COMP_LINE:0:$COMP_POINT}" _nonic="${COMP_WORDS[0]}" command= typed before option joined= kind= words= word
    typed="${line##*[[:space:]]}"
    before="${line%"$typed"}"
    COMPREPLY=()
    [ "$COMP_CWORD" -le 1 ] || command="${COMP_WORDS[1]}"
    case "$command" in lab | bench | feroce | hdl) [ "$COMP_CWORD" -le 2 ] || command="$command ${COMP_WORDS[2]}" ;; esac
    case "$command $before" in run*' -- '* | repeat*' -- '*) _nonic_program "$typed"; return ;; esac
    # The option whose value is being typed, if there is one.
    option="${before%"${before##*[![:space:]]}"}"
    option="${option##*[[:space:]]}"
    case "$typed" in --*=*) option="${typed%%=*}" joined="${typed%%=*}=" ;; esac
    for word in $(_nonic_options "$command"); do
        words="$words ${word%%=*}"
        case "$word" in "$option"=*) kind="${word#*=}" ;; esac
    done
    case "$kind,$typed" in
    ,-*) _nonic_offer "$typed" "$words $(_nonic_commands "$command")" ;;
    ,*) _nonic_word "$command" "$typed" ;;
    *) _nonic_value "$kind" "$typed" "$joined" "$line" ;;
    esac
}

complete -F _nonic_complete nonic
